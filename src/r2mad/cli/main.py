"""`r2mad`: the verbs, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import cyclopts
from cyclopts import App, Parameter

from r2mad import __version__
from r2mad.cli.ask import ask
from r2mad.cli.common import DONE, INCOMPLETE, INTERRUPTED, USAGE, complain, safe_streams
from r2mad.cli.compare import compare
from r2mad.cli.datasets import datasets
from r2mad.cli.demo import demo
from r2mad.cli.doctor import doctor
from r2mad.cli.memory import memory
from r2mad.cli.methods import methods
from r2mad.cli.metrics import metrics
from r2mad.cli.models import models
from r2mad.cli.regrade import regrade
from r2mad.cli.remember import remember
from r2mad.cli.report import report
from r2mad.cli.study import study
from r2mad.errors import R2madError

app = App(
    name="r2mad",
    help="""Multi-agent debates of language models: ask one question, or compare methods and trust the numbers.

    Start with `r2mad ask "…" --model openai/NAME`. Every flag can be set by a variable, `R2MAD_` and its name;
    `OPENAI_API_KEY` and `OPENAI_BASE_URL` are read as they are.

    Exit codes: 0 done, 1 incomplete, 2 wrong use, 130 interrupted.""",
    version=__version__,
    config=cyclopts.config.Env("R2MAD_", command=False),
    default_parameter=Parameter(negative=()),  # flags are named so that nobody needs a --no- form
    help_format="markdown",
    error_formatter=lambda error: f"r2mad: {error}",
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
app.command(ask)
app.command(remember)
app.command(study)
app.command(compare)
app.command(regrade)
app.command(report)
app.command(memory)
app.command(methods)
app.command(metrics)
app.command(datasets)
app.command(models)
app.command(doctor)
app.command(demo)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing that a user can cause ends in a traceback."""
    safe_streams()
    try:
        code = app(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except cyclopts.CycloptsError:
        return USAGE  # its message is printed already
    except R2madError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return DONE  # whoever read it has seen enough
    except OSError as error:  # our own files have errors of their own: this is stdout, on a full disk for one
        _discard_output()
        complain(f"the output cannot be written: {error.strerror or error}")
        return INCOMPLETE


def _discard_output() -> None:
    """Send what is left in stdout's buffer nowhere, or the interpreter complains of it as it exits."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def script() -> None:
    """Entry point of the `r2mad` command."""
    sys.exit(main())
