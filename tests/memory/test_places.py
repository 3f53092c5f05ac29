"""Where a memory can be, where none can, and what is asked of one that is there."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from r2mad.errors import StoreError, UnknownNameError, UsageError
from r2mad.memory import open_memory
from r2mad.protocols import MemoryStore
from tests.memory.made import made


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'memory.db'}"


@pytest.fixture
def store(url: str) -> Iterator[MemoryStore]:
    with closing(open_memory(url, embedder="fake/e:8", dimension=8)) as opened:
        yield opened


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    url = "sqlite:~/deep er/me%20mory?#.db"
    with closing(open_memory(url, embedder="e", dimension=2)) as store:
        assert store.url == url
        store.add([made(1, dimension=2)])
    assert [path.name for path in (tmp_path / "deep er").iterdir()] == ["me%20mory?#.db"]
    monkeypatch.chdir(tmp_path / "deep er")
    (tmp_path / "link.db").symlink_to(tmp_path / "deep er" / "me%20mory?#.db")
    for again in ("sqlite:me%20mory?#.db", f"sqlite:{tmp_path}/link.db"):
        with closing(open_memory(again)) as store:
            assert len(store.known()) == 1


@pytest.mark.parametrize(
    ("url", "error", "match"),
    [
        ("memory.db", UsageError, "scheme:place"),
        ("sqlite:", UsageError, r"write sqlite:PATH \(schemes: sqlite\)"),
        ("sqlite: ", UsageError, "names no place"),
        ("lance:x", UnknownNameError, r"schemes: sqlite\)"),
        ("", UsageError, "scheme:place"),
        ("sqlite::memory:", UsageError, "a memory is a file"),
        ("sqlite:a\0b", UsageError, "not a place"),
        ("sqlite:~no-such-user-at-all/x.db", UsageError, "not a place"),
    ],
)
def test_what_is_no_place(url: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        open_memory(url, embedder="e", dimension=8)
    assert "\n" not in str(caught.value)


def test_what_no_memory_can_be(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/memory.db"
    with pytest.raises(UsageError, match="at least one dimension"):
        open_memory(url, embedder="e", dimension=0)
    with pytest.raises(UsageError, match="paper, official"):
        open_memory(url, embedder="e", dimension=1, form="other")  # type: ignore[arg-type]
    assert not os.listdir(tmp_path)  # noqa: PTH208


def test_without_a_memory_none_is_made_unless_its_kind_is_said(tmp_path: Path) -> None:
    path = tmp_path / "no" / "memory.db"
    for kind in ({}, {"embedder": "e"}, {"dimension": 8}):
        with pytest.raises(StoreError, match=r"no memory at .*: `r2mad remember` builds one") as caught:
            open_memory(f"sqlite:{path}", **kind)
        assert str(path) in str(caught.value)
    assert not os.listdir(tmp_path)  # noqa: PTH208


def test_a_memory_of_another_kind(store: MemoryStore, url: str) -> None:
    with pytest.raises(UsageError, match=r"fake/e:8, not fake/f:8: open it with its own embedder, or export it"):
        open_memory(url, embedder="fake/f:8", dimension=8)
    with pytest.raises(UsageError, match=r"8 dimensions \(fake/e:8\), not 9: .* export it"):
        open_memory(url, embedder="fake/e:8", dimension=9)
    with pytest.raises(UsageError, match=r"'paper', not 'official': .* export it"):
        open_memory(url, embedder="fake/e:8", dimension=8, form="official")
    open_memory(url, form="official").close()  # who only reads takes it as it is
    open_memory(url, embedder="fake/e:8").close()
    with closing(open_memory(url, embedder="fake/e:8", dimension=8)) as again:
        again.add([made(1)])
        assert store.known() == again.known()
