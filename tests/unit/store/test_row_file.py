from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from memoryd.store.protocols import Vectors
from memoryd.store.row_file import RowFile


def numbers(rows: int, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).normal(size=(rows, 256)).astype(np.float32)


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """The kernel refuses to write beyond it, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_rows_are_read_as_written_in_any_order(tmp_path: Path) -> None:
    rows = RowFile(256, tmp_path, 10)
    vectors = numbers(10)
    places = np.array([7, 8, 9, 0, 2, 1, 3, 4, 5, 6])
    rows.write(places, vectors)
    assert np.array_equal(rows.take(places), vectors)
    rows.write(np.array([3, 3]), vectors[:2])
    assert np.array_equal(rows.take(np.array([3])), vectors[1:2])


def test_rows_outlast_growing(tmp_path: Path) -> None:
    rows = RowFile(256, tmp_path, 4)
    vectors = numbers(500)
    rows.write(np.arange(4), vectors[:4])
    rows.reserve(500)
    rows.write(np.arange(4, 500), vectors[4:])
    assert np.array_equal(rows.take(np.arange(500)), vectors)


def test_file_has_no_name_and_goes_with_its_rows(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    rows = RowFile(256, tmp_path, 4)
    rows.write(np.arange(4), numbers(4))
    assert list(tmp_path.iterdir()) == []
    del rows
    assert set(Path("/proc/self/fd").iterdir()) <= before


def test_rows_that_were_read_are_given_back(tmp_path: Path) -> None:
    rows = RowFile(256, tmp_path, 40_000)
    for start in range(0, 40_000, 4000):
        rows.write(np.arange(start, start + 4000), numbers(4000))
    before = mapped_bytes()
    for start in range(0, 40_000, 400):
        rows.take(np.arange(start, start + 400))
    assert mapped_bytes() < before + 4 * 2**20  # of 40 MB that were read


def mapped_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) * 1024


def test_disk_that_fills_up_moves_the_rows_into_memory(tmp_path: Path) -> None:
    rows = RowFile(256, tmp_path, 50)
    vectors = numbers(300)
    rows.write(np.arange(50), vectors[:50])
    with no_file_longer_than(100 * 1024):
        rows.reserve(300)
        rows.write(np.arange(50, 300), vectors[50:])
    assert np.array_equal(rows.take(np.arange(300)), vectors)


def test_write_that_fails_halfway_loses_nothing(tmp_path: Path) -> None:
    rows = RowFile(256, tmp_path, 300)
    vectors = numbers(300)
    rows.write(np.arange(50), vectors[:50])
    with no_file_longer_than(100 * 1024):
        rows.write(np.arange(50, 300), vectors[50:])
    assert np.array_equal(rows.take(np.arange(300)), vectors)


def test_without_a_folder_rows_are_in_memory(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "nowhere"):
        rows = RowFile(256, folder, 4)
        rows.write(np.arange(4), numbers(4))
        rows.reserve(9)
        assert np.array_equal(rows.take(np.arange(4)), numbers(4))
