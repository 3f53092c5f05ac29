"""A table, and how it becomes Markdown, CSV and LaTeX. What is undefined is a dash, and in CSV an empty field.

CSV has the numbers themselves, in full and with the ends of their intervals in columns of their own; the other two have
them as a reader wants them.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from r2mad.study.stats import ROUNDING

DASH = "–"
Form = Literal["share", "points", "plain"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number as a table holds it."""

    value: float | None
    form: Form = "share"
    """`share`: a fraction, as 0.701; `points`: a difference of shares, as +4.2 percentage points; `plain`: itself."""
    low: float | None = None
    high: float | None = None
    """Its 95 % interval."""
    digits: int | None = None
    """Decimals; by the form if not given: 3 of a share, 1 of points and others."""
    mark: str = ""
    """What must be said beside it, such as that some questions are missing."""

    @property
    def text(self) -> str:
        """As it is shown; a dash where there is none."""
        shown = DASH if self.value is None else self._shown(self.value)
        if self.value is not None and self.low is not None and self.high is not None:
            between = f"{self._shown(self.low)} to {self._shown(self.high)}"
            shown = f"{shown} ({between})"
        return f"{shown} {self.mark}" if self.mark else shown

    def _shown(self, value: float) -> str:
        digits = {"share": 3, "points": 1, "plain": 1}[self.form] if self.digits is None else self.digits
        if self.form != "points":
            return f"{value:,.{digits}f}".replace(",", " ")
        points = f"{abs(100 * value):.{digits}f}"
        if abs(value) < ROUNDING:
            return points
        if not float(points):  # what is not nothing never reads 0.0
            points = f"{abs(100 * value):.1g}"
        return ("+" if value > 0 else "−") + points


Entry = str | int | Number | None
"""None is a dash."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, named columns, rows of as many entries, and what a reader must know."""

    id: str
    """A short name that does for a file."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.id}: a row has not as many entries as there are columns")

    def to_markdown(self) -> str:
        """As GitHub's Markdown, title and notes with it."""
        right = [self._is_number(place) for place in range(len(self.columns))]
        lines = [_marked_row(self.columns), "|" + "|".join("---:" if one else "---" for one in right) + "|"]
        lines += [_marked_row([shown(entry) for entry in row]) for row in self.rows]
        notes = "".join(f"- {_markdown(note)}\n" for note in self.notes)
        return f"### {_markdown(self.title)}\n\n" + "\n".join(lines) + "\n" + (f"\n{notes}" if notes else "")

    def to_csv(self) -> str:
        """As RFC 4180 has it, numbers in full; a column with intervals is followed by their ends, one with marks by
        these."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        parts = [self._parts(place) for place in range(len(self.columns))]
        writer.writerow(
            f"{name} {part}".rstrip() for name, found in zip(self.columns, parts, strict=True) for part in found
        )
        for row in self.rows:
            writer.writerow(_raw(entry, part) for entry, found in zip(row, parts, strict=True) for part in found)
        return out.getvalue()

    def to_latex(self) -> str:
        """As a `table` for the packages booktabs and graphicx (which shrinks it to the page), notes below it."""
        spec = "".join("r" if self._is_number(place) else "l" for place in range(len(self.columns)))
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(self.title)}}}",
            rf"\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', self.id)}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{spec}}}",
            r"\toprule",
            " & ".join(map(latex, self.columns)) + r" \\",
            r"\midrule",
            *(" & ".join(latex(shown(entry)) for entry in row) + r" \\" for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}}",
            *(rf"\par\footnotesize {latex(note)}" for note in self.notes),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def _is_number(self, place: int) -> bool:
        entries = [row[place] for row in self.rows if row[place] is not None]
        return bool(entries) and not any(isinstance(entry, str) for entry in entries)

    def _parts(self, place: int) -> list[str]:
        """What a column becomes in CSV: itself, the ends of intervals, marks."""
        numbers = [entry for row in self.rows if isinstance(entry := row[place], Number)]
        found = [""]
        if any(one.low is not None for one in numbers):
            found += ["low", "high"]
        return [*found, "note"] if any(one.mark for one in numbers) else found


def shown(entry: Entry) -> str:
    """An entry as a reader sees it."""
    if entry is None:
        return DASH
    return entry.text if isinstance(entry, Number) else str(entry)


def _raw(entry: Entry, part: str) -> str:
    if isinstance(entry, Number):
        if part == "note":
            return entry.mark
        value = {"": entry.value, "low": entry.low, "high": entry.high}[part]
        return "" if value is None else format(round(value, 9), ".9g")
    return "" if entry is None or part else str(entry)


def _line(text: str) -> str:
    """On one line, without what only steers a terminal."""
    folded = " ".join(text.split())
    return "".join(sign for sign in folded if unicodedata.category(sign) not in ("Cc", "Cs", "Co"))


def _markdown(text: str) -> str:
    """Plain text that no sign of which is taken for mark-up."""
    quoted = re.sub(r"([\\`*_|<>~$&])", r"\\\1", _line(text))
    return quoted.replace("](", r"]\(")


def _marked_row(entries: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_markdown, entries)) + " |"


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # behind \\ it would begin an option, as a star would
    "]": "{]}",
    "*": "{*}",
    "–": "{--}",
    "−": "$-$",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
    "±": r"$\pm$",
    "²": r"\textsuperscript{2}",
    "λ": r"$\lambda$",
    "γ": r"$\gamma$",
    "β": r"$\beta$",
}


def latex(text: str) -> str:
    """Plain text as LaTeX sets it (with `\\usepackage[T1]{fontenc}`, and UTF-8 for letters of other scripts)."""
    apart = re.sub("-(?=-)", "-\0", _line(text))  # two hyphens would join to a dash
    return "".join(_LATEX.get(sign, sign) for sign in apart).replace("\0", "{}")
