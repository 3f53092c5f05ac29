"""The report's page: whole in itself, safe with hostile text, and right about which debates are which."""

import base64
import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from r2mad.cli.main import main
from r2mad.study.records import DEBATES, ITEMS, SCORES, Writer, write_items
from r2mad.study.report.browse import KINDS, PLAIN, kinds, ranked
from r2mad.study.report.gather import gather
from r2mad.study.report.safe import discreet, embedded, visible
from r2mad.study.report.write import Written, write_report
from r2mad.study.scores import Score
from r2mad.types import DebateRecord, Item, MemoryInfo, Peer, Question
from tests.study.by_hand import OPTIONS, Held, debate

Capture = pytest.CaptureFixture[str]
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> <!-- \u202egnol\u202c \x00\x1b[31m {{ 7*7 }} é"
)


def write_run(folder: Path, held: Sequence[Held], text: str = "Which?") -> Path:
    records, scores = Writer[DebateRecord](folder / DEBATES), Writer[Score](folder / SCORES)
    try:
        records.append_now(*(record for record, _ in held))
        scores.append_now(*(replace(score, model="fake/one", dataset="sums") for _, score in held))
    finally:
        records.close()
        scores.close()
    names = {record.question.id: record.question for record, _ in held}
    write_items(folder / ITEMS, [Item(Question(text, OPTIONS, id=id), "A", "sums", "test") for id in names])
    return folder


def _said(held: Held, text: str) -> Held:
    rounds = tuple(
        replace(one, replies=tuple(replace(reply, text=text) for reply in one.replies)) for one in held[0].rounds
    )
    return replace(held[0], rounds=rounds), held[1]


def telling() -> list[Held]:
    """One debate of each kind, on four questions by two methods."""
    mask = [Peer(0), Peer(1, shown=False, verdict="no"), Peer(2, verdict="yes")]
    return [
        debate("q1", "AAB", "ABB", method="mad"),
        debate("q2", "ABB", "AAB", method="mad"),
        debate("q3", "ABC", "AAB", method="mad", peers={1: [mask] * 3}),
        debate("q4", "AB-", "AB-", method="mad"),
        debate("q1", "AAA", method="vote"),
        debate("q2", "BBB", method="vote"),
        debate("q3", "AAx", method="vote"),
        debate("q4", "xxx", method="vote"),
    ]


class _Page(HTMLParser):
    """What a browser would see of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "script":
            self.texts.setdefault("script", []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        where = self._open[-1] if self._open else ""
        if where == "script":
            self.texts["script"][-1] += data
        else:
            self.texts.setdefault(where, []).append(data)

    def scripts(self) -> Iterator[tuple[dict[str, str | None], str]]:
        """Attributes and text of each."""
        found = [attributes for tag, attributes in self.tags if tag == "script"]
        yield from zip(found, self.texts["script"], strict=True)

    def data(self, name: str, value: str) -> list[Any]:
        """What is embedded in the scripts with such an attribute."""
        return [
            json.loads(gzip.decompress(base64.b64decode(text)) if "data-packed" in attributes else text)
            for attributes, text in self.scripts()
            if attributes.get(name) == value
        ]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Written:
    run = write_run(tmp_path_factory.mktemp("hostile"), [_said(one, HOSTILE) for one in telling()], HOSTILE)
    return write_report([run])


def test_the_page_is_whole_in_itself(hostile: Written) -> None:
    page = _Page(hostile.page)
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "base", "video", "audio", "source"}
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for tag, attributes in page.tags:
        assert "srcset" not in attributes
        assert (attributes.get("src") or "data:").startswith("data:image/svg+xml;base64,") or tag != "img"
        assert "src" not in attributes or tag == "img"
        assert (attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes), attributes
    for style in page.texts["style"]:
        assert "url(" not in style
        assert "@import" not in style
    for tag, attributes in page.tags:
        if tag == "img":
            svg = base64.b64decode((attributes["src"] or "").partition(",")[2]).decode()
            assert "href=" not in svg.replace("xmlns:xlink=", "")
            assert attributes["alt"]


def test_only_our_scripts_may_run(hostile: Written) -> None:
    page = _Page(hostile.page)
    (policy,) = [a["content"] or "" for t, a in page.tags if t == "meta" and "http-equiv" in a]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    assert "unsafe" not in parts["script-src"]
    assert "connect-src" not in parts
    ours = [text for attributes, text in page.scripts() if "type" not in attributes]
    assert len(ours) == 3
    assert parts["script-src"].split() == [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in ours
    ]


def test_hostile_text_stays_text(hostile: Written) -> None:
    page = _Page(hostile.page)
    raw = hostile.page.read_text(encoding="utf-8")
    assert "<script>alert" not in raw
    assert "onerror=alert(2)>" not in raw.replace("\\u003e", "")
    assert not set(raw) & set("\u202e\u202c\x00\x1b")
    (index,) = page.data("id", "index")
    (chunk,) = page.data("class", "chunk")
    shown = visible(HOSTILE)
    assert "⟨U+202E⟩gnol⟨U+202C⟩ ⟨U+0000⟩⟨U+001B⟩[31m {{ 7*7 }} é" in shown
    assert {asked["text"] for asked in index["questions"]} == {shown}
    assert {reply["text"] for one in chunk for row in one["rounds"] for reply in row["replies"] if "text" in reply} == {
        shown
    }


def test_names_are_escaped_too(tmp_path: Path) -> None:
    name = "mad<img src=x onerror=alert(3)>\u202e"
    written = write_report([write_run(tmp_path, [debate("q1", "AAA", "AAA", method=name)])])
    page = _Page(written.page)
    assert all((a["src"] or "").startswith("data:") for tag, a in page.tags if tag == "img")
    assert any("mad<img src=x onerror=alert(3)>⟨U+202E⟩" in text for text in page.texts["td"])


def test_kinds_of_debates() -> None:
    found = [kinds(score) for _, score in telling()]
    assert found == [
        ("lost",),
        ("rescued",),
        (),  # a tie in the opening is neither right nor wrong
        ("tie", "unparsed"),
        (),
        (),
        ("degraded",),
        ("failed", "degraded"),
    ]
    order = [kinds(score)[:1] for score in ranked(score for _, score in telling())]
    assert order == [("lost",), ("rescued",), ("tie",), ("failed",), ("degraded",), (), (), ()]


def test_the_list_says_what_filters_need(hostile: Written) -> None:
    page = _Page(hostile.page)
    (index,) = page.data("id", "index")
    (chunk,) = page.data("class", "chunk")
    rows = {(index["methods"][row[1]], index["questions"][row[5]]["id"]): row for row in index["debates"]}
    assert len(rows) == len(chunk) == 8
    assert [one["id"] for one in chunk] == [row[0] for row in index["debates"]]
    flags = {key: [kind for bit, kind in enumerate(index["kinds"]) if row[6] >> bit & 1] for key, row in rows.items()}
    assert flags["mad", "q1"] == ["lost"]
    assert flags["vote", "q4"] == ["failed", "degraded"]
    misconceived = {key[1] for key, row in rows.items() if row[6] >> len(KINDS) & 1}
    assert misconceived == {"q2", "q3", "q4"}  # for every method alike
    assert rows["mad", "q1"][7:] == ["B", 0, "110 100"]
    assert rows["vote", "q4"][7:] == [None, 0, "xxx"]
    assert index["questions"][0]["gold"] == "A"
    masked = next(one for one in chunk if "peers" in str(one))
    assert masked["rounds"][1]["views"][0]["peers"][1] == {"agent": 1, "shown": False, "verdict": "no"}
    assert [reply["grade"] for reply in masked["rounds"][0]["replies"]] == ["1", "0", "0"]


def _many(count: int) -> list[Held]:
    # digests do not compress, as text of models hardly does
    def noise(number: int) -> str:
        return "".join(hashlib.sha256(f"{number} {part}".encode()).hexdigest() for part in range(60))

    return [
        _said(debate(f"q{number:03}", "AAB", "ABB" if number == count - 1 else "AAA"), noise(number))
        for number in range(count)
    ]


def test_a_page_has_a_limit(tmp_path: Path) -> None:
    run = write_run(tmp_path, _many(150))
    whole = write_report([run], tmp_path / "whole")
    assert whole.browser is not None
    assert (whole.browser.embedded, whole.browser.left_out, whole.browser.compressed) == (150, 0, True)
    limit = whole.size - 150_000
    cut = write_report([run], tmp_path / "cut", page=limit)
    assert cut.browser is not None
    assert cut.browser.embedded + cut.browser.left_out == 150
    assert 0 < cut.browser.embedded < 150
    assert cut.page.stat().st_size == cut.size <= limit
    assert f"{cut.browser.left_out} left out, for the page" in cut.page.read_text(encoding="utf-8")
    page = _Page(cut.page)
    (index,) = page.data("id", "index")
    assert index["questions"][0]["id"] == "q149"  # the one that was lost comes first
    assert sum(map(len, page.data("class", "chunk"))) == cut.browser.embedded == len(index["debates"])


def test_few_debates_are_plain(tmp_path: Path) -> None:
    written = write_report([write_run(tmp_path, _many(5))], limit=3)
    assert written.browser is not None
    assert (written.browser.embedded, written.browser.left_out, written.browser.compressed) == (3, 2, False)
    assert sum(map(len, written.browser.chunks)) < PLAIN
    assert write_report([tmp_path], limit=0).browser is not None


def test_without_debates_only_scores_are_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", telling())
    (run / DEBATES).write_text("no debate\n")
    written = write_report([run], tmp_path / "out", debates=False)
    page = written.page.read_text(encoding="utf-8")
    assert written.browser is None
    assert 'id="index"' not in page
    assert 'id="browser"' not in page
    assert {path.suffix for path in written.figures} == {".svg", ".png"}
    assert all(path.stat().st_size for path in (*written.figures, *written.tables))
    assert "figure-accuracy" in page
    assert "figure-calibration" not in page


def test_secrets_in_addresses_are_left_out(tmp_path: Path) -> None:
    assert discreet("postgresql://me:secret@host/db and sqlite:a.db") == "postgresql://…@host/db and sqlite:a.db"
    memory = MemoryInfo("postgresql://me:secret@host/db", "1")
    written = write_report([write_run(tmp_path, [debate("q1", "AAA", "AAA", memory=memory)])])
    assert "me:secret" not in written.page.read_text(encoding="utf-8")


def test_the_last_line_of_a_debate_counts(tmp_path: Path) -> None:
    run = write_run(tmp_path, [debate("q1", "xxx"), debate("q1", "AAA", "AAA")])
    found = gather([run])
    assert found.debates == 1
    assert found.trust is not None
    assert found.trust.calibrations["mad"]["group"].count == 1
    assert found.browse is not None
    assert found.browse(10_000_000).embedded == 1


def test_what_cannot_be_seen_is_named() -> None:
    assert visible("a\tb\nc\r\nd") == "a\tb\nc\nd"
    assert visible("a\rb\u200bc\ud800 👩\u200d🔬") == "a⟨U+000D⟩b⟨U+200B⟩c⟨U+D800⟩ 👩\u200d🔬"
    assert json.loads(embedded({"a": "</script>&"})) == {"a": "</script>&"}
    assert not set(embedded("</script>&")) & set("<>&")


def test_the_command(tmp_path: Path, capsys: Capture) -> None:
    run = write_run(tmp_path / "run", telling())
    assert main(["report", str(run)]) == 0
    out = capsys.readouterr().out
    assert f"Page: {run / 'report' / 'index.html'}" in out
    assert "with 8 of 8 debates" in out
    assert (run / "report" / "figures" / "accuracy.png").is_file()
    assert list((run / "report" / "tables").glob("*.csv"))
    assert main(["report", str(run), "--out", str(tmp_path / "there"), "--no-debates", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == str(tmp_path / "there" / "index.html")
    assert (told["debates"], told["embedded"], told["left_out"]) == (8, 0, 8)
    assert [one["cell"]["method"] for one in told["cells"]] == ["mad", "vote"]


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ([], 2, "name the folder of a run"),
        (["nowhere"], 1, "no run there"),
        (["nowhere", "--limit-debates", "-1"], 2, "--limit-debates -1 is out of range"),
    ],
)
def test_what_is_refused(arguments: list[str], code: int, line: str, capsys: Capture) -> None:
    assert main(["report", *arguments]) == code
    told = capsys.readouterr()
    assert line in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_a_run_without_scores(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / SCORES).write_text("")
    assert main(["report", str(tmp_path)]) == 1
    assert "no debate of this run has ended yet" in capsys.readouterr().err


def test_without_the_extra() -> None:
    code = "import sys; sys.modules['altair'] = None; from r2mad.cli.main import main; sys.exit(main(['report', 'x']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "r2mad: a report needs altair: pip install 'r2mad[study]'\n"
