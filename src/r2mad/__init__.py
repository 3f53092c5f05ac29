"""r2mad: multi-agent debates of language models, with experience memory, confidence, and every baseline beside them.

    from r2mad import debate_sync
    record = debate_sync("Which planet has the most moons?", model="openai/gpt-4o-mini")
    print(record.answer, record.votes)

Names are imported when first used, so that `import r2mad` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r2mad.api import debate as debate
    from r2mad.api import debate_sync as debate_sync
    from r2mad.errors import ModelError as ModelError
    from r2mad.errors import R2madError as R2madError
    from r2mad.errors import StoreError as StoreError
    from r2mad.errors import UsageError as UsageError
    from r2mad.memory import open_memory as open_memory
    from r2mad.method import Method as Method
    from r2mad.methods import METHODS as METHODS
    from r2mad.types import DebateRecord as DebateRecord
    from r2mad.types import Item as Item
    from r2mad.types import Question as Question
    from r2mad.types import Reply as Reply
    from r2mad.types import Round as Round

__version__ = "0.1.0"

_HOMES = {
    "debate": "api",
    "debate_sync": "api",
    "ModelError": "errors",
    "R2madError": "errors",
    "StoreError": "errors",
    "UsageError": "errors",
    "open_memory": "memory",
    "Method": "method",
    "METHODS": "methods",
    "DebateRecord": "types",
    "Item": "types",
    "Question": "types",
    "Reply": "types",
    "Round": "types",
}

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
