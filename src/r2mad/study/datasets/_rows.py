"""Rows out of files: JSON lines, CSV, Parquet; each row knows the line that it stands in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from r2mad.errors import UsageError
from r2mad.study.datasets._record import Fault, Row
from r2mad.study.datasets.names import SUFFIXES

BOM = b"\xef\xbb\xbf"
NEEDED = "reading Parquet needs pyarrow: pip install 'r2mad[study]'"
_FIELD = 1 << 24
"""Longest CSV field; the module's own limit is too low for a question with a long table."""


def read(path: Path, fault: Fault, delimiter: str | None = None) -> Iterator[Row]:
    """The rows of a file, by its ending.

    Raises:
        R2madError: of the kind `fault`: the file cannot be read, or a row is malformed; it names file and line.
        UsageError: another ending, or pyarrow is missing.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: files of questions end in {', '.join(SUFFIXES)}")
    if suffix == ".parquet":
        return _parquet(path, fault)
    try:
        content = path.read_bytes().removeprefix(BOM)
    except OSError as error:
        raise fault(f"{path}: cannot be read: {error.strerror}") from error
    if suffix in (".csv", ".tsv"):
        return _csv(path, content, fault, delimiter or ("\t" if suffix == ".tsv" else ","))
    return _jsonl(path, content, fault)


def text(row: Row, columns: Sequence[str], fault: Fault) -> str:
    """The text in the first of these columns that the row has.

    Raises:
        R2madError: of the kind `fault`: it has none of them, or no text there.
    """
    for column in columns:
        if row.values.get(column) is not None:
            return plain(row.values[column], f"{row.where}: {column}", fault)
    there = [name for name in columns if name in row.values]
    if there:
        raise fault(f"{row.where}: {there[0]} is empty")
    raise fault(f"{row.where}: no column {columns[0]!r}; there are: {', '.join(row.values) or 'none'}")


def plain(value: object, where: str, fault: Fault) -> str:
    """A cell as text: a text as it is, a number as it is written.

    Raises:
        R2madError: of the kind `fault`: it is neither.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise fault(f"{where} must be a text, not {_shown(value)}")


def texts(value: object, where: str, fault: Fault) -> tuple[str, ...]:
    """A cell that is a list, as texts; a text must hold a JSON list.

    Raises:
        R2madError: of the kind `fault`: it is no list of texts.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_float=str)
        except (ValueError, RecursionError):
            raise fault(f"{where} must be a JSON list of texts, not {_shown(value)}") from None
    if not isinstance(value, list):
        raise fault(f"{where} must be a list of texts, not {_shown(value)}")
    return tuple(plain(one, where, fault) for one in value)


def _shown(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=True, default=repr)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _jsonl(path: Path, content: bytes, fault: Fault) -> Iterator[Row]:
    index = 0
    # Only at line feeds: other signs that Python takes for line ends may stand inside a text.
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            values = json.loads(line.decode(), parse_float=str, parse_constant=str)  # a number keeps its written form
        except UnicodeDecodeError as error:
            raise fault(f"{where}: not UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise fault(f"{where}: not JSON: {getattr(error, 'msg', None) or _line(error)}") from error
        if not isinstance(values, dict):
            raise fault(f"{where}: must be a JSON object, not {_shown(values)}")
        yield Row(where, index, values)
        index += 1


def _csv(path: Path, content: bytes, fault: Fault, delimiter: str) -> Iterator[Row]:
    try:
        decoded = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise fault(f"{path}, line {line}: not UTF-8") from error
    before = csv.field_size_limit(_FIELD)  # the module's, so not left changed while others may read
    try:
        return iter(list(_csv_rows(path, decoded, fault, delimiter)))
    finally:
        csv.field_size_limit(before)


def _csv_rows(path: Path, content: str, fault: Fault, delimiter: str) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    start = index = 0
    while True:
        where = f"{path}, line {start + 1}"
        try:
            cells = next(lines, None)
        except csv.Error as error:
            raise fault(f"{where}: not CSV: {error}") from error
        start = lines.line_num
        if cells is None:
            break
        if not header:
            header = [cell.strip() for cell in cells]
            doubled = sorted({name for name in header if header.count(name) > 1})
            if doubled:
                raise fault(f"{where}: two columns are called {doubled[0]!r}")
        elif cells:
            if len(cells) != len(header):
                raise fault(f"{where}: {len(cells)} fields, but the header has {len(header)}")
            yield Row(where, index, dict(zip(header, cells, strict=True)))
            index += 1
    if not header:
        raise fault(f"{path}: empty; the first line must name the columns")


def _parquet(path: Path, fault: Fault) -> Iterator[Row]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise UsageError(f"{path}: {NEEDED}") from None
    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except OSError as error:
        raise fault(f"{path}: cannot be read as Parquet: {error.strerror or _line(error)}") from error
    except Exception as error:  # the library has errors of its own, not all of one family
        raise fault(f"{path}: not Parquet: {_line(error)}") from error
    return (Row(f"{path}, row {index + 1}", index, values) for index, values in enumerate(rows))


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
