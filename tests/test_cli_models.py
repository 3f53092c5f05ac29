"""`models`, `datasets` and `doctor`: what is there, and whether it works."""

import json
import shutil
from pathlib import Path

import pytest

from r2mad.cli.main import main
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))


def test_models_are_listed_with_size_licence_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    out = capsys.readouterr().out
    assert "local/smollm2-135m" in out
    assert "r2mad models pull smollm2-135m" in out
    assert main(["models", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(row["licence"] and row["megabytes"] and row["path"] is None for row in rows)
    assert main(["models", "pull", "no-such"]) == 2
    assert "smollm2-135m" in capsys.readouterr().err


def test_datasets_are_listed_with_their_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets"]) == 0
    assert "everyday" in capsys.readouterr().out
    assert main(["datasets", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found[:3]] == ["starter", "simulated", "math500"]
    assert all(one["splits"]["train"] + one["splits"]["test"] == one["items"] for one in found)


def _doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    code = main(["doctor", "--json", *arguments])
    findings = json.loads(capsys.readouterr().out)
    return code, {finding["what"].removeprefix("openai/fake").strip(": "): finding for finding in findings}


def test_doctor_finds_an_endpoint_good(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer.spawn() as server:
        code, found = _doctor(capsys, "--model", "openai/fake", "--base-url", server.base_url)
    assert code == 0
    assert {found[name]["state"] for name in ("", "log-probabilities", "seeds", "system role", "cache folder")} == {
        "good"
    }


def test_doctor_finds_out_what_an_endpoint_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    settings = FakeSettings(ignore_seed=True, ignore_logprobs=True, no_system=True)
    with FakeServer.spawn(settings) as server:
        code, found = _doctor(capsys, "--model", "openai/fake", "--base-url", server.base_url, "--max-retries", "0")
    assert code == 0
    assert {found[name]["state"] for name in ("log-probabilities", "seeds", "system role")} == {"missing"}


@pytest.mark.parametrize(
    ("settings", "arguments", "advice"),
    [
        (FakeSettings(api_key="right"), ["--api-key", "wrong"], "OPENAI_API_KEY"),
        (FakeSettings(model="other"), [], "see which models"),
    ],
)
def test_doctor_says_what_to_do(
    settings: FakeSettings, arguments: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer.spawn(settings) as server:
        code, found = _doctor(capsys, "--model", "openai/fake", "--base-url", server.base_url, *arguments)
    assert code == 1
    assert found[""]["state"] == "broken"
    assert advice in found[""]["advice"]


def test_doctor_and_an_endpoint_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = _doctor(capsys, "--model", "openai/fake", "--base-url", "http://127.0.0.1:9/v1")
    assert code == 1
    assert "start the server" in found[""]["advice"]


def test_doctor_misses_the_embedded_model_and_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = _doctor(capsys)
    assert code == 0  # nothing is broken
    assert found["embedded model"]["state"] == "missing"
    assert "r2mad models pull" in found["embedded model"]["advice"]


def test_doctor_and_a_folder_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "file" / "logs"))
    code, found = _doctor(capsys)
    assert code == 1
    assert "R2MAD_LOG_DIR" in found["log folder"]["advice"]


def test_doctor_and_a_disk_that_is_nearly_full(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100_000_000})())
    code, found = _doctor(capsys)
    assert code == 1
    assert "100 MB free" in found["cache folder"]["detail"]
