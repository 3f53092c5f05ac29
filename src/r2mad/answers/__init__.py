"""Final answers: found in replies, compared, and counted.

    extract("So ((B)).", "choice", options)      the final answer of a reply, or None
    equivalent("\\\\frac12", "0.5", "math")        whether two answers are the same
    tally(["B", None, "b"], "choice")            the classes of equivalent answers, most popular first

These serve consensus, votes, rewards and scoring alike, so a debate and its grade never disagree about what an answer
is. No text makes them raise. Formulas are compared in worker processes, started when first needed; the first tally
of formulas takes a moment longer for it. Importing this package imports no mathematics.
"""

from __future__ import annotations

from r2mad.answers._canonical import Canonical
from r2mad.answers._strip import spoken
from r2mad.answers._tally import AnswerClass, Tally, canonical, equivalent, extract, tally, tally_async

__all__ = ["AnswerClass", "Canonical", "Tally", "canonical", "equivalent", "extract", "spoken", "tally", "tally_async"]
