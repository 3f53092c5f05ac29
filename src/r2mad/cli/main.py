"""`r2mad`: the verbs, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import cyclopts
from cyclopts import App, Parameter

from r2mad import __version__
from r2mad.cli.ask import ask
from r2mad.cli.common import DONE, INTERRUPTED, USAGE
from r2mad.cli.methods import methods
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
    result_action="return_value",
)
app.command(ask)
app.command(methods)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing that a user can cause ends in a traceback."""
    try:
        code = app(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except cyclopts.CycloptsError:
        return USAGE  # its message is printed already
    except R2madError as error:
        print(f"r2mad: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("r2mad: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains as it exits
        return DONE


def script() -> None:
    """Entry point of the `r2mad` command."""
    sys.exit(main())
