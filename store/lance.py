"""LanceDB's tables, one a generation: where they are, what they hold on disk, and what its errors are called.

The only module that imports lancedb, late: it takes a second.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memoryd.store.errors import MemorydError, StoreCorrupt, StoreFull, StoreUnavailable
from memoryd.store.failpoints import failpoint
from memoryd.store.late_import import import_when_used
from memoryd.store.precision import PRECISIONS, Precision, Small, restore, shrink
from memoryd.store.protocols import Vectors
from memoryd.store.quarantine import folder_bytes

_CACHE_BYTES = 4 * 2**20  # of each of LanceDB's own caches
_SCAN_ROWS = 4096
_PASSING = (errno.EIO, errno.ENOMEM, errno.ENFILE, errno.EMFILE)  # the machine's trouble, not the table's


def stored_rows(
    folder: Path, fingerprint: str, dimension: int, *, with_vectors: bool = True
) -> Iterator[tuple[list[int], list[int], Vectors | Small]]:
    """What a generation has on disk at this moment, in portions: ids, documents, vectors (or none of them) as kept.

    Reads the files anew, past the mirror and past what an open table remembers. Writes nothing.
    """
    columns = ["id", "document", *(["vector"] if with_vectors else [])]
    with translated_errors(table_path(folder, fingerprint)):
        if not folder.is_dir():
            return
        database = connect(folder)
        if table_name(fingerprint) not in database.list_tables().tables:
            return
        table = database.open_table(table_name(fingerprint))
        for rows in table.search().select(columns).to_batches(_SCAN_ROWS):
            none: Vectors = np.empty((rows.num_rows, 0), np.float32)
            matrix = kept_numbers(rows, dimension) if with_vectors else none
            yield rows["id"].to_pylist(), rows["document"].to_pylist(), matrix


def table_path(folder: Path, fingerprint: str) -> Path:
    """The folder of a generation's table."""
    return folder / f"vectors_{fingerprint}.lance"


def table_name(fingerprint: str) -> str:
    return f"vectors_{fingerprint}"


def known_fingerprints(folder: Path) -> set[str]:
    """The generations that have a table on disk."""
    return {table.stem.removeprefix("vectors_") for table in folder.glob("vectors_*.lance")}


def drop_table(folder: Path, fingerprint: str) -> int:
    """Remove a generation's vectors from disk; returns how many bytes that were."""
    table = table_path(folder, fingerprint)
    held = folder_bytes(table)
    with translated_errors(table):
        failpoint("vectors.drop.before")
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


def connect(folder: Path) -> Any:
    """LanceDB remembers each version's files, up to gigabytes of them, though no version is read twice."""
    import_when_used("lance_namespace_urllib3_client")  # a client for a REST service, half of what lancedb imports
    import lancedb

    return lancedb.connect(folder, session=lancedb.Session(_CACHE_BYTES, _CACHE_BYTES))


def open_or_create(folder: Path, name: str, dimension: int, precision: Precision) -> tuple[Any, Precision]:
    """The table, and the precision that it has: where it is there already, maybe not the one that is wanted."""
    database = connect(folder)
    if name not in database.list_tables().tables:
        failpoint("vectors.create.before")
        table = database.create_table(name, schema=table_schema(dimension, precision))
        failpoint("vectors.create.after")
        return table, precision
    table = database.open_table(name)
    for held in PRECISIONS:
        if table.schema == table_schema(dimension, held):
            return table, held
    raise damaged(table_path(folder, name.removeprefix("vectors_")), "its columns are not the ones that we write")


@contextmanager
def translated_errors(table: Path) -> Iterator[None]:
    try:
        yield
    except MemorydError:
        raise
    except Exception as error:
        raise translate(error, table) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of lancedb's native code, which no name can be imported for
            raise
        raise damaged(table, first_line(str(error))) from error


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
        hint=f"memoryd puts {table} into quarantine and rebuilds it from the embedding cache",
        path=table,
    )


def first_line(words: str) -> str:
    return words.strip().splitlines()[0][:200] if words.strip() else "no message"
