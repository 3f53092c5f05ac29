"""The process that reads formulas: lines of JSON in, lines of JSON out. `python -m r2mad.answers._worker`.

A formula may take for ever or fill the memory, and in a thread nothing can stop it; a process can be killed. This one
lets the system kill it once a formula has had its share of processor time, so that the verdict does not depend on how
busy the machine is. In: {"id": 1, "text": "\\\\frac12"}. Out: {"ready": true} once, then {"id": 1, "key": "=1/2"},
with null for what is no formula, or "given_up": true for what would not fit in memory.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from r2mad.answers._structure import canonical_key

_MEMORY = 2 << 30  # bytes of address space; a formula that needs more is nobody's answer
_SYMPY = re.compile(r"\\(?:int|sum|prod|lim|det|begin\{vmatrix\})(?![a-zA-Z])")


@contextmanager
def _unless_memory() -> Iterator[None]:
    """Suppress every error but that of a full memory."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:
        return


def key(text: str, seconds: float) -> str | None:
    """The canonical key of a formula, or nothing if it is none."""
    with _unless_memory():  # whatever else a formula makes a parser do, it is then no formula
        return canonical_key(text)
    if not _SYMPY.search(text):
        return None
    with _unless_memory():
        return _sympy_key(text, seconds)
    return None


def _sympy_key(text: str, seconds: float) -> str:
    """Integrals, sums, products and limits: read by math-verify's parser, worked out by sympy."""
    _arm(0)  # the import is start-up, and not the formula's
    import mpmath
    import sympy
    from latex2sympy2_extended import latex2sympy

    from r2mad.answers._evaluate import POINTS, number_key, point, values_key

    _arm(seconds)
    formula: Any = latex2sympy(text)
    if isinstance(formula, sympy.Eq):
        formula = formula.rhs
    formula = sympy.sympify(formula).doit()
    symbols = sorted(formula.free_symbols, key=str)
    values = []
    for index in range(POINTS if symbols else 1):
        at = {symbol: sympy.Rational(str(point(str(symbol), index))) for symbol in symbols}
        value = sympy.N(formula.subs(at), 80)
        real, imaginary = value.as_real_imag()
        values.append(mpmath.mpc(mpmath.mpf(str(real)), mpmath.mpf(str(imaginary))))
    return values_key(values) if symbols else number_key(values[0])


def _arm(seconds: float) -> None:
    """Be killed after so many seconds of processor time; 0 calls it off. Where there is no such timer (Windows), the
    parent's clock has to do."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def serve(seconds: float) -> None:
    """Answer line by line until the input ends."""
    out = sys.stdout
    sys.stdout = sys.stderr  # a library that prints must not break the protocol
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any] = {"id": request["id"]}
        _arm(seconds)
        try:
            reply["key"] = key(request["text"], seconds)
        except MemoryError:
            reply["given_up"] = True
        finally:
            _arm(0)
        print(json.dumps(reply), file=out, flush=True)


def main() -> None:
    """Run the worker; the only argument is the seconds of processor time that one formula may take."""
    _limit_memory()
    with suppress(KeyboardInterrupt, BrokenPipeError):
        serve(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)


if __name__ == "__main__":
    main()
