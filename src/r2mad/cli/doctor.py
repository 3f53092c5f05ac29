"""`r2mad doctor`: is everything there, does it work, and what to do if not."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
import time
from dataclasses import dataclass, field
from typing import Annotated, Literal

from cyclopts import Parameter

from r2mad.cli.common import DONE, INCOMPLETE
from r2mad.errors import R2madError
from r2mad.settings import Settings, cache_folder, log_folder

State = Literal["good", "missing", "broken"]

FREE_MB = 500
"""Megabytes that should be free: the embedded model, and room for the cache and records of a study."""
ALIKE = ("How many legs does a spider have?", "What is the number of legs of a spider?")
"""Two texts whose vectors must be closer than those of the first and `UNLIKE`, or else memories find nothing."""
UNLIKE = "Share prices fell sharply in October because investors feared higher interest rates."
TIMED = 8
"""Texts that are embedded to tell the time for one: enough for a mean, and seconds at most on a slow CPU."""


@dataclass(frozen=True)
class DoctorOptions:
    """What to look at."""

    model: list[str] = field(default_factory=list)
    """Models to try, `provider/name`; the embedded one if none is given."""
    json: bool = False
    """Print one JSON array instead of text."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    what: str
    state: State
    detail: str
    advice: str = ""


def doctor(
    *,
    options: Annotated[DoctorOptions, Parameter(name="*")] = DoctorOptions(),
    settings: Annotated[Settings, Parameter(name="*")] = Settings(),  # noqa: B008  (frozen)
) -> int:
    """Check this machine and the models you name: each line is good, missing or broken, with what to do.

    A model is asked a few short questions to find out what its endpoint can do; an embedder embeds a few sentences.

        r2mad doctor --model openai/NAME --base-url http://localhost:8000/v1
        r2mad doctor --embedder openai/NAME --embedder-base-url http://localhost:8080/v1
    """
    findings = [_python(), *_folders()]
    if options.model:
        for name in options.model:
            findings += asyncio.run(_model(name, settings))
    elif not settings.embedder:
        findings += asyncio.run(_embedded(settings))
    if settings.embedder or not options.model:
        findings.append(asyncio.run(_embedder(settings)))
    if options.json:
        import json as json_module
        from dataclasses import asdict

        print(json_module.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.state:<8} {finding.what}: {finding.detail}")
            if finding.advice:
                print(f"{'':<8} → {finding.advice}")
    return INCOMPLETE if any(finding.state == "broken" for finding in findings) else DONE


def _python() -> Finding:
    # An older one than 3.11 could not have installed this; it is here so that a report names it.
    return Finding("Python", "good", f"{platform.python_version()} at {sys.executable}")


def _folders() -> list[Finding]:
    findings = []
    for what, folder in (("cache folder", cache_folder()), ("log folder", log_folder())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / ".doctor"
            probe.write_text("")
            probe.unlink()
            free = shutil.disk_usage(folder).free // 1_000_000
        except OSError as error:
            advice = f"set R2MAD_{'CACHE' if 'cache' in what else 'LOG'}_DIR to a folder that can be written"
            findings.append(Finding(what, "broken", f"{folder}: {error.strerror}", advice))
            continue
        if free < FREE_MB:
            findings.append(Finding(what, "broken", f"{folder}, {free} MB free", f"free at least {FREE_MB} MB"))
        else:
            findings.append(Finding(what, "good", f"{folder}, {free} MB free"))
    return findings


async def _embedded(settings: Settings) -> list[Finding]:
    from importlib.util import find_spec

    from r2mad.models.catalogue import DEFAULT, locate

    if find_spec("xllamacpp") is None:
        advice = "pip install 'r2mad[local]', or name a model of an endpoint with --model"
        return [Finding("embedded model", "missing", "the package xllamacpp is not installed", advice)]
    if locate(DEFAULT) is None:
        return [Finding("embedded model", "missing", f"local/{DEFAULT} is not here", f"r2mad models pull {DEFAULT}")]
    return await _model(f"local/{DEFAULT}", settings)


def _readers() -> str:
    """The methods that need log-probabilities."""
    from r2mad.methods import METHODS

    return ", ".join(name for name, method in METHODS.items() if method.needs_logprobs)


async def _model(name: str, settings: Settings) -> list[Finding]:
    from r2mad.api import model_options
    from r2mad.models import open_model, probe

    try:
        model = open_model(name, model_options(settings))
        try:
            found = await probe(model)
            context = await model.context() if hasattr(model, "context") else None
        finally:
            await model.aclose()
    except R2madError as error:
        return [Finding(name, "broken", str(error), _advice(str(error)))]
    if found.error:
        return [Finding(name, "broken", found.error, _advice(found.error))]
    speed = f", {found.tokens_per_second:g} tokens a second" if found.tokens_per_second else ""
    seeds = {True: "good", False: "missing", None: "missing"}[found.seeds]
    said = {
        True: "the same seed gives the same reply",
        False: "the same seed gives other replies",
        None: "cannot be told",
    }
    return [
        Finding(name, "good", f"answers{speed}"),
        Finding(f"{name}: log-probabilities", "good", "sent when asked for")
        if found.logprobs
        else Finding(
            f"{name}: log-probabilities",
            "missing",
            "none come back",
            f"methods that read them cannot run there: {_readers()}",
        ),
        Finding(
            f"{name}: seeds",
            "good" if seeds == "good" else "missing",
            said[found.seeds],
            "" if found.seeds else "records keep every reply, but a run cannot be repeated there",
        ),
        Finding(f"{name}: system role", "good", "taken")
        if found.system_role
        else Finding(f"{name}: system role", "missing", "refused; it goes into the first user turn instead"),
        Finding(f"{name}: context", "good", f"{context} tokens")
        if context
        else Finding(
            f"{name}: context", "missing", "the server does not say", "long debates drop old turns when it is full"
        ),
    ]


async def _embedder(settings: Settings) -> Finding:
    from importlib.util import find_spec

    from r2mad.api import open_embedding
    from r2mad.embed import DEFAULT

    name = settings.embedder or DEFAULT
    what = f"embedder {name}"
    if name == DEFAULT and find_spec("wordllama") is None:
        advice = "pip install 'r2mad[local]', or name an embedder of an endpoint with --embedder"
        return Finding(what, "missing", "the package wordllama is not installed", advice)
    try:
        embedder = await open_embedding(settings)
        try:
            like, alike, unlike = await embedder.embed([*ALIKE, UNLIKE])
            start = time.perf_counter()
            await embedder.embed([f"{UNLIKE} {number}" for number in range(TIMED)])
            took = (time.perf_counter() - start) / TIMED * 1000
            dimension = await embedder.dimension()
        finally:
            await embedder.aclose()
    except R2madError as error:
        return Finding(what, "broken", str(error), _advice(str(error)))
    told = f"{dimension} numbers a vector, {took:.2g} ms a short text"
    if not like @ alike > like @ unlike:
        advice = "use a model that was trained for embeddings"
        return Finding(what, "broken", f"{told}; two like questions are no closer than two unlike texts", advice)
    return Finding(what, "good", f"{told}; like {like @ alike:.2f}, unlike {like @ unlike:.2f}")


def _advice(error: str) -> str:
    for sign, advice in (
        ("401 from", "give the key as OPENAI_API_KEY or --api-key"),
        ("403 from", "the key is not allowed this model"),
        ("404 from", "see which models the server has; the name is what follows the first slash"),
        ("is damaged", "r2mad models pull, with the same name"),
        ("cannot connect", "start the server, or mend --base-url"),
        ("unknown host", "mend --base-url"),
    ):
        if sign in error:
            return advice
    return ""
