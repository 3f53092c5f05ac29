"""The canonical form of an answer: what two equivalent answers share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Canonical:
    """Two answers of one kind are equivalent if their keys are equal, which is symmetric and transitive."""

    key: str
    decided: bool = True
    """False if the form was given up after the time-out: the key is then the answer itself, which equals no other."""
