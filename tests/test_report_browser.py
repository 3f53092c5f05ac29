"""The report's page in a real browser: nothing is complained of or fetched, and filters and debates work."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from r2mad.study.report import browse
from r2mad.study.report.write import write_report
from tests.study.test_report import HOSTILE, telling, write_run

BINARY = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no chromium, chromium-browser or google-chrome on the path"),
]


class Tab:
    """One page of the browser, spoken to over its DevTools."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[dict[str, Any]] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer; what happens meanwhile is kept."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json(timeout=30)
            if message.get("id") == self._number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    async def run(self, script: str) -> Any:
        """What an expression comes to, awaited if it is a promise."""
        found = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, script: str) -> Any:
        """The same, as soon as it is true."""
        for _ in range(200):
            if found := await self.run(script):
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def complaints(self) -> list[str]:
        """What went wrong, and what was fetched but the page itself."""
        found = []
        for event in self.events:
            name, told = event["method"], event["params"]
            url = told.get("request", {}).get("url", "data:")
            noisy = name in ("Runtime.exceptionThrown", "Log.entryAdded")
            noisy |= name == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert")
            if noisy or (name == "Network.requestWillBeSent" and not url.startswith(("file:", "data:", "blob:"))):
                found.append(json.dumps(told)[:500])
        return found


@asynccontextmanager
async def opened(page: Path, profile: Path) -> AsyncIterator[Tab]:
    """The page in a browser that is closed again."""
    assert BINARY is not None
    quiet = asyncio.subprocess.DEVNULL
    browser = await asyncio.create_subprocess_exec(
        BINARY, *FLAGS, f"--user-data-dir={profile}", "about:blank", stdout=quiet, stderr=quiet
    )
    try:
        port = profile / "DevToolsActivePort"
        for _ in range(400):
            if port.exists() and "\n" in port.read_text():
                break
            await asyncio.sleep(0.05)
        address = f"http://127.0.0.1:{port.read_text().splitlines()[0]}"
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{address}/json/new?about:blank") as reply:
                target = await reply.json(content_type=None)
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Runtime", "Log", "Network", "Page"):
                    await tab.call(f"{domain}.enable")
                await tab.call("Page.navigate", url=page.as_uri())
                await tab.until("document.readyState === 'complete' && location.protocol === 'file:'")
                yield tab
    finally:
        with suppress(ProcessLookupError):
            browser.terminate()
        await browser.wait()


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "packed"])
async def test_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool) -> None:
    if not plain:
        monkeypatch.setattr(browse, "PLAIN", 0)
    written = write_report([write_run(tmp_path / "run", telling(), HOSTILE)])
    assert written.browser is not None
    assert written.browser.compressed is not plain
    async with opened(written.page, tmp_path / "profile") as tab:
        await tab.until("!document.getElementById('browser').hidden")
        count = "document.getElementById('count').textContent"
        assert await tab.run(count) == "8 of 8 debates"

        await tab.run("document.querySelector('[value=lost]').click()")
        assert await tab.run(count) == "1 of 8 debates"
        await tab.run("document.querySelector('[value=rescued]').click()")
        assert await tab.run(count) == "2 of 8 debates"
        await tab.run("document.querySelector('#filters button[type=reset]').click()")
        await tab.until(f"{count} === '8 of 8 debates'")
        search = "(words) => { const box = document.querySelector('[name=text]'); box.value = words;"
        search += " box.dispatchEvent(new Event('input', { bubbles: true })); return " + count + "; }"
        assert await tab.run(f"({search})('Q3')") == "2 of 8 debates"
        assert await tab.run(f"({search})('nothing like it')") == "0 of 8 debates"
        assert await tab.run(f"({search})('')") == "8 of 8 debates"

        await tab.run("document.querySelector('#list tbody a').click()")
        text = await tab.until("document.getElementById('view').innerText")
        assert "Round 1" in text
        assert "agent 2" in text
        assert "✗ wrong" in text
        assert "lost" in text
        assert await tab.run("document.activeElement.id") == "view"
        assert await tab.run("document.querySelectorAll('#view .reply').length") == 6
        await tab.run("location.hash = '#debates'")
        await tab.until("document.getElementById('view').hidden")

        await tab.run("document.getElementById('figure-accuracy').scrollIntoView()")
        await tab.until("document.querySelector('#figure-accuracy.drawn svg') !== null")
        assert await tab.run("document.querySelectorAll('img').length") == len(written.figures) // 2
        assert tab.complaints() == []


async def test_a_mask_is_seen(tmp_path: Path) -> None:
    written = write_report([write_run(tmp_path / "run", telling())])
    async with opened(written.page, tmp_path / "profile") as tab:
        await tab.until("!document.getElementById('browser').hidden")
        await tab.run("document.querySelector('#list tbody tr:nth-child(8) a').click()")
        await tab.until("document.querySelector('#view .reply') !== null")
        text = await tab.run("document.getElementById('view').innerText")
        assert "hidden: no" in text
        assert "mask: yes" in text
        assert "agent 1 (hidden, no)" in text
        assert await tab.run("document.querySelectorAll('#view .reply.masked').length") == 1
        assert tab.complaints() == []
