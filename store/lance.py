"""LanceDB's tables, one a generation: where they are, what they hold on disk, and what its errors are called.

The only module that imports lancedb, late: it takes a second.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memoryd.store.errors import MemorydError, StoreCorrupt, StoreFull, StoreUnavailable, VectorsAway
from memoryd.store.failpoints import failpoint
from memoryd.store.late_import import import_when_used
from memoryd.store.place import VectorPlace, as_place, fingerprints_of, numbers_of, table_name
from memoryd.store.precision import PRECISIONS, Precision, Small, restore, shrink
from memoryd.store.protocols import Vectors
from memoryd.store.quarantine import folder_bytes
from memoryd.store.remote_errors import ANEW, translate_remote
from memoryd.store.vector_ids import Column, Owned, in_order

_CACHE_BYTES = 4 * 2**20  # of each of LanceDB's own caches
_SCAN_ROWS = 4096
_PASSING = (errno.EIO, errno.ENOMEM, errno.ENFILE, errno.EMFILE)  # the machine's trouble, not the table's


def stored_rows(
    place: VectorPlace | Path, fingerprint: str, dimension: int, *, with_vectors: bool = True
) -> Iterator[tuple[list[int], list[int], Vectors | Small]]:
    """What a generation has stored at this moment, in portions: ids, documents, vectors (or none of them) as kept."""
    place = as_place(place)
    columns = ["id", "document", *(["vector"] if with_vectors else [])]
    with translated_errors(place, fingerprint):
        for rows in _stored_batches(place, fingerprint, columns):
            none: Vectors = np.empty((rows.num_rows, 0), np.float32)
            matrix = kept_numbers(rows, dimension) if with_vectors else none
            yield rows["id"].to_pylist(), rows["document"].to_pylist(), matrix


def stored_ids(place: VectorPlace | Path, fingerprint: str) -> Owned:
    """The passages that a generation has vectors of at this moment."""
    place = as_place(place)
    columns: dict[str, list[Column]] = {"id": [np.empty(0, np.int64)], "document": [np.empty(0, np.int64)]}
    with translated_errors(place, fingerprint):
        for rows in _stored_batches(place, fingerprint, list(columns)):
            for name, parts in columns.items():
                parts.append(rows[name].to_numpy(zero_copy_only=False))
    return in_order(*map(np.concatenate, columns.values()))


def _stored_batches(place: VectorPlace, fingerprint: str, columns: list[str]) -> Iterator[Any]:
    """Reads the files anew, past the mirror and past what an open table remembers. Writes nothing."""
    if place.folder is not None and not place.folder.is_dir():
        return
    database = connect(place)
    name, is_there = place.choose_table(fingerprint, database.list_tables().tables)
    if is_there:
        yield from database.open_table(name).search().select(columns).to_batches(_SCAN_ROWS)


def table_path(place: VectorPlace | Path, fingerprint: str) -> Path:
    return as_place(place).table_path(fingerprint)


def known_fingerprints(place: VectorPlace | Path) -> set[str]:
    """The generations that have a table."""
    place = as_place(place)
    if place.folder is not None:
        return {table.stem.removeprefix("vectors_") for table in place.folder.glob("vectors_*.lance")}
    with translated_errors(place):
        return fingerprints_of(connect(place).list_tables().tables)


def drop_table(place: VectorPlace | Path, fingerprint: str) -> int:
    """Remove a generation's vectors; returns how many bytes of this machine's disk that were."""
    place = as_place(place)
    table = place.table_path(fingerprint)
    held = 0 if place.is_remote else folder_bytes(table)
    with translated_errors(place, fingerprint):
        failpoint("vectors.drop.before")
        if place.is_remote:
            database = connect(place)
            for number in numbers_of(fingerprint, database.list_tables().tables):
                database.drop_table(table_name(fingerprint, number))
        else:
            shutil.rmtree(table, ignore_errors=True)
        failpoint("vectors.drop.after")
    return held


def table_schema(dimension: int, precision: Precision) -> Any:
    import pyarrow as pa

    number = pa.int8() if precision == "int8" else pa.float32()
    return pa.schema([("id", pa.int64()), ("document", pa.int64()), ("vector", pa.list_(number, dimension))])


def table_rows(ids: Sequence[int], documents: Sequence[int], vectors: Vectors, precision: Precision) -> Any:
    """The rows that keep these vectors."""
    import pyarrow as pa

    schema = table_schema(vectors.shape[1], precision)
    numbers = shrink(vectors) if precision == "int8" else vectors
    flat = pa.array(numbers.ravel(), schema.field("vector").type.value_type)
    columns = [pa.array(ids, pa.int64()), pa.array(documents, pa.int64())]
    return pa.table([*columns, pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])], schema=schema)


def kept_numbers(rows: Any, dimension: int) -> Vectors | Small:
    """The vectors of rows that were read, in the numbers that they are kept in."""
    column = rows["vector"]
    flat = (column.combine_chunks() if hasattr(column, "combine_chunks") else column).flatten()
    numbers: Vectors | Small = flat.to_numpy(zero_copy_only=False).reshape(-1, dimension)
    return numbers


def kept_vectors(rows: Any, dimension: int) -> Vectors:
    """The vectors of rows that were read; a copy."""
    return restore(kept_numbers(rows, dimension)).copy()


def connect(place: VectorPlace) -> Any:
    """LanceDB remembers each version's files, up to gigabytes of them, though no version is read twice."""
    import_when_used("lance_namespace_urllib3_client")  # a client for a REST service, half of what lancedb imports
    import lancedb

    options = place.options()
    if options is not None and place.connection and place.connection[0] == options:
        return place.connection[1]
    session = lancedb.Session(_CACHE_BYTES, _CACHE_BYTES)
    database = lancedb.connect(place.folder or place.uri, storage_options=options, session=session)
    if options is not None:
        place.connection = (options, database)
    return database


def sweep(table: Path) -> None:
    """Take away what writes that were cut off have left in a table's folder; LanceDB's own cleaning passes it over.

    For whoever is the only one to write there.
    """
    for left in table.rglob(".tmp*"):
        left.unlink(missing_ok=True)


def data_files(table: Path) -> dict[str, tuple[int, int]] | None:
    """The files of a table's rows, with size and time: LanceDB never changes one. None: the table is not there."""
    try:
        if not (table / "_versions").is_dir():
            return None
        with os.scandir(table / "data") as entries:
            stats = {entry.name: entry.stat() for entry in entries}
    except FileNotFoundError:
        return None
    return {name: (found.st_size, found.st_mtime_ns) for name, found in stats.items()}


def open_or_create(place: VectorPlace, fingerprint: str, dimension: int, precision: Precision) -> tuple[Any, Precision]:
    """The table, and the precision that it has: where it is there already, maybe not the one that is wanted."""
    database = connect(place)
    listed = database.list_tables().tables
    name, is_there = place.choose_table(fingerprint, listed)
    if not is_there:
        failpoint("vectors.create.before")
        table = database.create_table(name, schema=table_schema(dimension, precision))
        failpoint("vectors.create.after")
        for number in numbers_of(fingerprint, listed)[:-1]:  # of those that were given up the last one is kept
            database.drop_table(table_name(fingerprint, number))
        return table, precision
    table = database.open_table(name)
    for held in PRECISIONS:
        if table.schema == table_schema(dimension, held):
            return table, held
    raise damaged(place.table_path(fingerprint), "its columns are not the ones that we write")


@contextmanager
def translated_errors(place: VectorPlace, fingerprint: str = "") -> Iterator[None]:
    """Every error as ours. Far away: none is asked for while it is held back, and what becomes of it is noted."""
    place.outage.check()
    table = place.table_path(fingerprint)
    try:
        yield
    except VectorsAway as error:  # a key that cannot be read, for instance
        place.outage.fail(error)
        raise
    except MemorydError:
        raise
    except Exception as error:
        if place.is_remote:
            raise _judge_remote(error, place, table) from None  # its words may hold what must not be told
        raise translate(error, table) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of lancedb's native code, which no name can be imported for
            raise
        raise damaged(table, first_line(str(error))) from error
    place.outage.succeed()


def _judge_remote(error: Exception, place: VectorPlace, table: Path) -> MemorydError:
    """What is missing is damage only where the rest can be looked at."""
    found = translate_remote(error, place, table.stem)
    if isinstance(found, StoreCorrupt):
        found.path = table
        try:
            connect(place).list_tables()
        except Exception as failure:  # noqa: BLE001 - whatever it is, nothing is known of the table
            found = translate_remote(failure, place, table.stem)
            if isinstance(found, StoreCorrupt):
                found = VectorsAway(f"The vectors are away: {place}: it cannot be looked at", hint=found.hint)
    if isinstance(found, VectorsAway):
        place.outage.fail(found)
    return found


def translate(error: Exception, table: Path) -> MemorydError:
    words = str(error)
    if any(sign in words for sign in ("No space left", "os error 28)", "os error 122)")):
        return StoreFull(f"No space left for the vectors: {table.parent}", hint="Free some space on that disk")
    if any(sign in words for sign in ("ermission denied", "ead-only file system", "os error 13", "os error 30")):
        return StoreUnavailable(f"The vectors cannot be written: {table.parent}", hint="Check the folder's permissions")
    if any(f"os error {number})" in words for number in _PASSING) or "commit conflict" in words.lower():
        return StoreUnavailable(f"The vector store failed: {first_line(words)}", hint="memoryd tries again by itself")
    if any(sign in words for sign in ("orrupt", "not found", "Not found", "Invalid", "invalid", "LanceError", "panic")):
        return damaged(table, first_line(words))
    return StoreUnavailable(f"The vector store failed: {first_line(words)}", hint="memoryd tries again by itself")


def damaged(table: Path, what: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"The vector store is damaged: {what}",
        hint=f"memoryd puts {table} into quarantine and rebuilds it from the embedding cache"
        if table.is_absolute()
        else ANEW,
        path=table,
    )


def first_line(words: str) -> str:
    return words.strip().splitlines()[0][:200] if words.strip() else "no message"
