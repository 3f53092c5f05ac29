"""`r2mad datasets`: what there is to ask."""

from __future__ import annotations

import json as json_module
from collections import Counter


def datasets(*, json: bool = False) -> int:
    """List every data set with its size, groups, source and licence.

    Args:
        json: Print one JSON array instead of text.
    """
    from r2mad.study.datasets import DATASETS, SPLITS

    rows = []
    for one in DATASETS.values():
        items = one.load()
        splits = {split: sum(item.split == split for item in items) for split in SPLITS}
        groups = dict(Counter(item.group for item in items))
        rows.append(
            {
                "name": one.name,
                "summary": one.summary,
                "items": len(items),
                "splits": splits,
                "groups": groups,
                "source": one.source,
                "licence": one.licence,
            }
        )
        if not json:
            print(f"{one.name}: {len(items)} items; {one.summary}")
            print("  splits: " + ", ".join(f"{name} {count}" for name, count in splits.items()))
            print("  groups: " + ", ".join(f"{name} {count}" for name, count in groups.items()))
            print(f"  {one.source}; {one.licence}")
    if json:
        print(json_module.dumps(rows, indent=2, ensure_ascii=False))
    return 0
