"""What of a reply is read for an answer: not the reasoning that comes before it, and not more than its end."""

from __future__ import annotations

import re

_TAGS = re.compile(
    r"[<\[◁](/?)\s{0,3}(?:[a-z]{1,10}:)?"
    r"(?:think|thinking|thought|thoughts|reasoning|analysis|scratchpad|reflection)\b[^<>\[\]◁▷\n]{0,200}[>\]▷]",
    re.IGNORECASE,
)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_SPECIAL = re.compile(r"<\|(?:im_end|end|return|eot_id|endoftext|end_of_text)\|>|</s>")
TAIL = 200_000
"""Characters at the end of a reply that are searched: no answer is declared further from the end than this."""
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xA0: 0x20}


def spoken(text: str) -> str:
    """The reply without its reasoning.

    A closing tag without an opening one drops everything before it. The first closing tag ends the reasoning, however
    many opening ones came before, since a model may well mention them while it thinks. Reasoning that never closes was
    cut off: only what stands before it is left.
    """
    at = text.rfind(_FINAL_CHANNEL)
    if at >= 0:
        text = text[at + len(_FINAL_CHANNEL) :]
    kept: list[str] = []
    start: int | None = 0  # where the text that counts began, or None inside reasoning
    for tag in _TAGS.finditer(text):
        if tag[1]:
            if start is not None:
                kept.clear()
            start = tag.end()
        elif start is not None:
            kept.append(text[start : tag.start()])
            start = None
    if start is not None:
        kept.append(text[start:])
    return _SPECIAL.sub("", "\n".join(kept))


def narrow(text: str) -> str:
    """Full-width letters, digits and brackets as the plain ones, and odd spaces as spaces; the length stays."""
    return text.translate(_WIDE)
