"""`r2mad memory`: what is in a memory, what is wrong with it, and moving it about."""

from __future__ import annotations

from cyclopts import App

from r2mad.cli.memory_audit import audit
from r2mad.cli.memory_forget import forget
from r2mad.cli.memory_look import info, list_debates, show
from r2mad.cli.memory_move import export, import_

memory = App(
    name="memory",
    help="""Look into a memory, check it, and move it. A memory is written `sqlite:PATH`.

    Start with `r2mad memory info sqlite:PATH`, and with `r2mad memory audit sqlite:PATH` before numbers are believed.
    `r2mad remember` builds one.""",
)
memory.command(info)
memory.command(audit)
memory.command(list_debates, name="list")
memory.command(show)
memory.command(forget)
memory.command(export)
memory.command(import_, name="import")
