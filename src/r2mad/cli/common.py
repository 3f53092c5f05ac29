"""What several verbs need: exit codes, and where the log goes."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal

LogLevel = Literal["debug", "info", "warning", "error"]

STEERING = ("Cc", "Cf", "Cs", "Co")
"""Unicode's categories of what is not shown but may do something."""
JOINERS = "\u200c\u200d"
"""Two of them that only shape letters and emoji."""

DONE, INCOMPLETE, USAGE, INTERRUPTED = 0, 1, 2, 130


def log_to_stderr(level: LogLevel) -> None:
    """Send the package's log to stderr, one line an event."""
    logging.basicConfig(level=level.upper(), stream=sys.stderr, format="%(levelname)s %(message)s", force=True)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # its warnings are about tasks, not about the user's work


def printable(text: str) -> str:
    """`text` on one line, without anything that could steer a terminal."""
    line = re.sub(r"\s+", " ", text).strip()
    return "".join(sign if sign in JOINERS or unicodedata.category(sign) not in STEERING else "\ufffd" for sign in line)


def fetch_local(models: Iterable[str]) -> None:
    """Pull the models that run in this process, before the event loop begins: in it Ctrl-C would wait for a download.

    Raises:
        R2madError: see `r2mad.models.catalogue.pull`.
    """
    for name in models:
        if name.startswith("local/"):
            from r2mad.models.catalogue import pull

            pull(name.removeprefix("local/"), lambda line: print(line, file=sys.stderr, flush=True))


def complain(line: str) -> None:
    """One line about what is wrong, on stderr if there is one."""
    with suppress(OSError, ValueError):
        print(f"r2mad: {printable(line)}", file=sys.stderr, flush=True)


def print_bytes(line: bytes) -> None:
    """A line for another program: UTF-8, whatever the terminal's own encoding is."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(line)
    else:  # a stand-in, such as a test's
        sys.stdout.write(line.decode())


def safe_streams() -> None:
    """Give the program streams that it can always write to: a closed one becomes none, odd characters are escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  (for the whole run)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
