"""The command line: a file a verb. Heavy imports stay inside the functions, so that `--help` is quick."""

from r2mad.cli.main import main

__all__ = ["main"]
