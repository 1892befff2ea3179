"""Rows of float32 in a file without a name: for whoever reads few of many, they take disk and no memory.

They are written through the file, so that a full disk is an error and not a signal, and read through a map, whose pages
are given back after each read; the system keeps them for as long as it has room. The file goes with the process.
Where it cannot be written the rows are kept in memory, and nothing else changes.
"""

from __future__ import annotations

import mmap
import os
import weakref
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import structlog
from numpy.typing import NDArray

from memoryd.store.protocols import Vectors

log = structlog.get_logger()


class RowFile:
    def __init__(self, dimension: int, folder: Path | None, capacity: int) -> None:
        """Without a folder they are in memory from the start."""
        self._dimension = dimension
        self._row_bytes = dimension * 4
        self._file: int | None = None
        self._map: mmap.mmap | None = None
        self._rows: Vectors = np.empty((0, dimension), np.float32)
        try:
            self._file = self._open(folder) if folder else None
        except OSError as error:
            log.warning("row_file_unavailable", reason=error.strerror)
        self.reserve(capacity)

    def _open(self, folder: Path) -> int:
        with TemporaryFile(dir=folder) as file:
            descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, descriptor)
        return descriptor

    def reserve(self, capacity: int) -> None:
        """Make room for so many rows."""
        if capacity <= len(self._rows):
            return
        if self._file is None:
            grown = np.empty((capacity, self._dimension), np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
            return
        try:
            os.ftruncate(self._file, capacity * self._row_bytes)
            self._map = mmap.mmap(self._file, capacity * self._row_bytes, access=mmap.ACCESS_READ)
            self._map.madvise(mmap.MADV_RANDOM)
        except OSError as error:
            self._keep_in_memory(error)
            self.reserve(capacity)
            return
        self._rows = np.frombuffer(self._map, np.float32).reshape(capacity, self._dimension)

    def write(self, rows: NDArray[np.int64], vectors: Vectors) -> None:
        """Put the vectors into these rows, in this order."""
        if self._file is not None:
            try:
                self._write_runs(self._file, rows, np.ascontiguousarray(vectors, np.float32))
            except OSError as error:
                self._keep_in_memory(error)
        if self._file is None:
            self._rows[rows] = vectors

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """A copy of these rows."""
        taken: Vectors = self._rows[rows]
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
        return taken

    def _write_runs(self, descriptor: int, rows: NDArray[np.int64], vectors: Vectors) -> None:
        """A write for each run of rows that follow each other."""
        starts = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        for start, end in pairwise(starts):
            rest = memoryview(vectors[start:end].view(np.uint8).data).cast("B")
            at = int(rows[start]) * self._row_bytes if len(rest) else 0
            while len(rest):
                written = os.pwrite(descriptor, rest, at)
                rest, at = rest[written:], at + written

    def _keep_in_memory(self, error: OSError) -> None:
        log.warning("row_file_unavailable", reason=error.strerror)
        self._rows, self._file, self._map = self._rows.copy(), None, None
