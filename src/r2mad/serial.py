"""Records as JSON and back, checked. What is written is one line, so that files of records can be read line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from r2mad.errors import StoreError
from r2mad.types import SCHEMA, DebateRecord

R = TypeVar("R")

_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type[R]) -> TypeAdapter[R]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def dump(record: Any) -> bytes:
    """A record as one line of JSON, without the newline.

    Raises:
        StoreError: it holds something that JSON has no form for.
    """
    try:
        return _adapter(type(record)).dump_json(record, by_alias=True)
    except PydanticSerializationError as error:
        raise StoreError(f"this {type(record).__name__} cannot be written: {error}") from error


def load(kind: type[R], line: bytes | str, where: str = "a record") -> R:
    """Read one record back.

    Raises:
        StoreError: not such a record, or one of a newer schema; the message begins with `where`.
    """
    try:
        record = _adapter(kind).validate_json(line)
    except ValidationError as error:
        _refuse_newer(line, where)
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the line"
        raise StoreError(f"{where}: not a {kind.__name__}: {place}: {first['msg']}") from error
    if isinstance(record, DebateRecord) and record.schema > SCHEMA:
        _refuse_newer(line, where)
    return record


@dataclass(frozen=True, slots=True)
class _Version:
    schema: int = SCHEMA


def _refuse_newer(line: bytes | str, where: str) -> None:
    try:
        found = _adapter(_Version).validate_json(line).schema
    except ValidationError:
        return  # not even an object: the caller has a better word for it
    if found > SCHEMA:
        raise StoreError(f"{where}: schema {found} is newer than this r2mad knows ({SCHEMA}); update it")
