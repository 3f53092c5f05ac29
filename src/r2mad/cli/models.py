"""`r2mad models`: the catalogue of models that run in this process, and fetching them."""

from __future__ import annotations

import json as json_module
import sys

from cyclopts import App

models = App(name="models", help="List and fetch models that run in this process, without an endpoint or a key.")


@models.command(name="list")
def list_models(*, json: bool = False) -> int:
    """List the models that have a name, and which of them are here.

    Any other GGUF file can be used as local//path/to/file.gguf, or from the hub as local/hf:owner/repo/file.gguf.

    Args:
        json: Print one JSON array instead of text.
    """
    from r2mad.models.catalogue import CATALOGUE, locate

    rows = [
        {
            "model": f"local/{entry.name}",
            "parameters": entry.parameters,
            "megabytes": entry.megabytes,
            "licence": entry.licence,
            "source": f"{entry.source}: {entry.where} {entry.file}",
            "sha256": entry.sha256,
            "path": str(found) if (found := locate(entry.name)) else None,
        }
        for entry in CATALOGUE.values()
    ]
    if json:
        print(json_module.dumps(rows, indent=2))
        return 0
    for row in rows:
        here = row["path"] or "not here; r2mad models pull " + str(row["model"]).removeprefix("local/")
        print(f"{row['model']:<22} {row['parameters']:>6}  {row['megabytes']:>5} MB  {row['licence']:<11} {here}")
        print(f"{'':<22} {row['source']}, sha256 {row['sha256'] or 'as the hub states it'}")
    return 0


@models.command
def pull(name: str, /) -> int:
    """Fetch a model, check its hash, and keep it in your cache folder. Run it again after an interruption.

    Args:
        name: A name of `r2mad models list`, or hf:owner/repo/file.gguf.
    """
    from r2mad.models import catalogue

    print(catalogue.pull(name.removeprefix("local/"), lambda line: print(line, file=sys.stderr)))
    return 0
