"""Text that others wrote, made safe to show: replies of models and data sets may hold anything."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from typing import Any

_UNSEEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Control characters but newline and tab, what turns the direction of writing, what takes no room, halves of pairs.
The two joiners that shape letters and emoji are not among them."""


def visible(text: str) -> str:
    """`text` with everything that a reader could not see, or that would reorder what is seen, named by its code."""
    if _UNSEEN.search(text) is None:
        return text
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))


def embedded(value: Any) -> str:
    """A value as JSON that may stand inside of a script element: nothing in it can end the element, or begin one."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def packed(value: Any) -> str:
    """A value as JSON, compressed, in base64; the same value gives the same text."""
    return base64.b64encode(gzip.compress(embedded(value).encode(), compresslevel=9, mtime=0)).decode()


def script_hash(script: str) -> str:
    """What a Content-Security-Policy calls an inline script by, so that no other script can run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def discreet(text: str) -> str:
    """`text` without the name and password that an address in it may hold; reports are shared."""
    return re.sub(r"(?<=//)[^/@\s]+@", "…@", text)
