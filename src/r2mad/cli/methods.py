"""`r2mad methods`: what there is to choose from."""

from __future__ import annotations

import json as json_module


def methods(*, json: bool = False) -> int:
    """List every debate method: what it is made of, how many calls it makes, where it was published.

    Calls are those of one question if no debate stops early.

    Args:
        json: Print one JSON array instead of text.
    """
    from r2mad.methods import METHODS

    if json:
        rows = [
            {
                "name": method.name,
                "summary": method.summary,
                "calls": method.calls,
                "needs": method.needs,
                "agents": method.agents,
                "rounds": method.rounds,
                "composition": method.composition,
                "source": method.source,
            }
            for method in METHODS.values()
        ]
        print(json_module.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    width = max(len(name) for name in METHODS)
    for method in METHODS.values():
        print(f"{method.name:<{width}}  {method.calls:>3} call{'s' if method.calls > 1 else ' '}  {method.summary}")
        print(f"{'':<{width}}             {method.composition}")
        print(f"{'':<{width}}             {method.source}")
        if method.needs:
            print(f"{'':<{width}}             needs: {', '.join(method.needs)}")
    print("\nsc-m exists for every m from 1 to 999. --agents and --rounds change the size of debates.")
    print("Compose others: BASE+PART+PART, such as r2mad+objective-mask, or a file NAME.toml.")
    print("A memory is --memory sqlite:PATH, built by r2mad remember; training items are --train starter:train.")
    return 0
