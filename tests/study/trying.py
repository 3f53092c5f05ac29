"""A small study for tests: four starter questions, two methods, the fake server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r2mad.models.fake_server import FakeServer
from r2mad.settings import Settings
from r2mad.study.config import MemoryPlan, StudyConfig, TrainPlan, team_of
from r2mad.study.studies import Outcome, run_config


def config(server: FakeServer | None, **changes: Any) -> StudyConfig:
    at = server.base_url if server else "http://127.0.0.1:9/v1"
    settings = changes.pop("settings", Settings(base_url=at, cache=":memory:"))
    usual: dict[str, Any] = {
        "name": "try",
        "datasets": ("starter:test",),
        "methods": ("cot", "mad"),
        "teams": (team_of("openai/fake"),),
        "settings": settings,
        "limit": 4,
        "memory": MemoryPlan(limit=5),
        "train": TrainPlan(limit=3),
    }
    return StudyConfig(**{**usual, **changes})


async def run(study: StudyConfig, folder: Path, **more: Any) -> Outcome:
    return await run_config(study, folder / (study.name or "run"), folder / "memories", **more)
