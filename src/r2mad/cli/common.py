"""What several verbs need: exit codes, and where the log goes."""

from __future__ import annotations

import logging
import sys
from typing import Literal

LogLevel = Literal["debug", "info", "warning", "error"]

DONE, INCOMPLETE, USAGE, INTERRUPTED = 0, 1, 2, 130


def log_to_stderr(level: LogLevel) -> None:
    """Send the package's log to stderr, one line an event."""
    logging.basicConfig(level=level.upper(), stream=sys.stderr, format="%(levelname)s %(message)s", force=True)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # its warnings are about tasks, not about the user's work
