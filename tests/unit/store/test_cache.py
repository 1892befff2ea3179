from __future__ import annotations

import gzip
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from memoryd.store.cache import SqliteCache
from memoryd.store.errors import StoreCorrupt, StoreFull, StoreUnavailable
from memoryd.store.failpoints import arm
from memoryd.store.precision import PRECISIONS, Precision, shrink
from memoryd.store.protocols import Vectors
from tests.support.clock import SetClock
from tests.support.old_cache import scatter, widen

DAY = 86_400
OLD = Path(__file__).with_name("data") / "embeddings_float32.db.gz"
VECTOR = np.array([0.6, 0.8], np.float32)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def cache(tmp_path: Path, clock: SetClock) -> Iterator[SqliteCache]:
    opened = SqliteCache(tmp_path / "embeddings.db", clock)
    yield opened
    opened.close()


def test_kept_vector_is_found_to_the_last_bit(cache: SqliteCache) -> None:
    vector = np.random.default_rng(7).normal(size=384).astype(np.float32)
    cache.keep("f1", {b"text": vector})
    found = cache.find("f1", [b"text"])[b"text"]
    assert found.dtype == np.float32
    assert np.array_equal(found, vector)


@pytest.mark.parametrize("dimension", [2, 3, 384])
def test_8_bits_are_kept_as_they_are_written_to_lancedb(tmp_path: Path, clock: SetClock, dimension: int) -> None:
    drawn = np.random.default_rng(7).normal(size=(50, dimension)).astype(np.float32)
    vectors = {f"{number}".encode(): vector for number, vector in enumerate(drawn)}
    with closing(SqliteCache(tmp_path / "embeddings.db", clock, precision="int8")) as cache:
        cache.keep("f1", vectors)
        is_found, matrix = cache.find_all("f1", list(vectors))
        assert all(is_found)
        assert matrix.dtype == np.float32
        assert np.array_equal(shrink(matrix), shrink(drawn))
        found, kept = cache.find("f1", list(vectors)), cache.peek_numbers("f1", vectors)
        assert np.array_equal(np.stack([found[key] for key in vectors]), matrix)
        assert np.array_equal(np.stack(list(cache.peek("f1", vectors).values())), matrix)
        assert np.array_equal(np.stack([kept[key] for key in vectors]), shrink(drawn))


def test_32_bits_do_where_8_are_wanted_but_not_8_where_32_are(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "embeddings.db"
    wide, small = np.array([0.6, 0.8], np.float32), np.array([0.28, 0.96], np.float32)
    with closing(SqliteCache(path, clock)) as cache:
        cache.keep("f1", {b"wide": wide})
    with closing(SqliteCache(path, clock, precision="int8")) as cache:
        cache.keep("f1", {b"small": small})
        is_found, matrix = cache.find_all("f1", [b"small", b"wide", b"small"])
        assert is_found == [True] * 3
        assert np.array_equal(shrink(matrix), shrink(np.stack([small, wide, small])))
        assert cache.find("f1", [b"small", b"wide"]).keys() == {b"small", b"wide"}
    with closing(SqliteCache(path, clock)) as cache:
        assert cache.find_all("f1", [b"small", b"wide"])[0] == [False, True]
        assert cache.peek("f1", [b"small", b"wide"]).keys() == {b"wide"}
        assert cache.peek_numbers("f1", [b"small", b"wide"])[b"small"].dtype == np.int8
        cache.keep("f1", {b"small": small})
        assert np.array_equal(cache.find("f1", [b"small"])[b"small"], small)
        assert cache._sql.execute("SELECT count(*) FROM embeddings").fetchone() == (2,)


def test_only_what_was_kept_is_found(cache: SqliteCache) -> None:
    cache.keep("f1", {b"a": VECTOR})
    assert cache.find("f1", [b"b", b"a", b"a"]).keys() == {b"a"}
    assert cache.find("f1", []) == {}


def test_other_fingerprint_has_other_vectors(cache: SqliteCache) -> None:
    cache.keep("f1", {b"a": VECTOR})
    assert cache.find("f2", [b"a"]) == {}
    cache.keep("f2", {b"a": VECTOR * 2})
    assert np.array_equal(cache.find("f1", [b"a"])[b"a"], VECTOR)


def test_keeping_again_replaces(cache: SqliteCache) -> None:
    cache.keep("f1", {b"a": VECTOR})
    cache.keep("f1", {b"a": VECTOR * 2})
    assert np.array_equal(cache.find("f1", [b"a"])[b"a"], VECTOR * 2)


def test_vectors_survive_the_process(tmp_path: Path, clock: SetClock) -> None:
    first = SqliteCache(tmp_path / "embeddings.db", clock)
    first.keep("f1", {b"a": VECTOR})
    first.close()
    second = SqliteCache(tmp_path / "embeddings.db", clock)
    assert np.array_equal(second.find("f1", [b"a"])[b"a"], VECTOR)
    second.close()


def test_prune_drops_what_is_neither_in_use_nor_recent(cache: SqliteCache, clock: SetClock) -> None:
    cache.keep("f1", {b"in use": VECTOR, b"old": VECTOR, b"found since": VECTOR})
    clock.move(31 * DAY)
    cache.keep("f1", {b"recent": VECTOR})
    cache.find("f1", [b"found since"])
    assert cache.prune([b"in use"], unused_days=30) == 1
    assert cache.find("f1", [b"in use", b"old", b"found since", b"recent"]).keys() == {
        b"in use",
        b"found since",
        b"recent",
    }
    assert cache.prune([b"in use"], unused_days=30) == 0


def test_prune_forgets_what_was_in_use_the_last_time(cache: SqliteCache, clock: SetClock) -> None:
    cache.keep("f1", {b"a": VECTOR})
    clock.move(31 * DAY)
    assert cache.prune([b"a"], unused_days=30) == 0
    assert cache.prune([], unused_days=30) == 1


def test_full_disk_keeps_what_was_there(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "embeddings.db"
    cache = SqliteCache(path, clock)
    cache.keep("f1", {b"a": VECTOR})
    cache._sql.execute("PRAGMA max_page_count = 4")
    with pytest.raises(StoreFull):
        cache.keep("f1", {f"{number}".encode(): np.zeros(384, np.float32) for number in range(50)})
    assert cache.find("f1", [b"a", b"1"]).keys() == {b"a"}
    cache.close()


def test_garbage_file_is_corrupt(tmp_path: Path, clock: SetClock) -> None:
    (tmp_path / "embeddings.db").write_bytes(b"not a database " * 100)
    with pytest.raises(StoreCorrupt):
        SqliteCache(tmp_path / "embeddings.db", clock)


@pytest.mark.parametrize("kept_before_checksums", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda blob: blob[:-3],
        lambda blob: blob[:-4],
        lambda blob: b"",
        lambda blob: np.array([np.nan, 0.8], "<f4").tobytes(),
        lambda blob: np.array([0.6, 1.8], "<f4").tobytes(),
        lambda blob: "text",
    ],
)
def test_row_that_is_not_as_it_was_kept_is_absent_and_dropped(
    cache: SqliteCache, spoil: Callable[[bytes], object], kept_before_checksums: bool
) -> None:
    cache.keep("f1", {b"a": VECTOR, b"b": VECTOR})
    blob = cache._sql.execute("SELECT vector FROM embeddings LIMIT 1").fetchone()[0]
    cache._sql.execute("UPDATE embeddings SET vector = ? WHERE text_hash = ?", (spoil(blob), b"a"))
    if kept_before_checksums:
        cache._sql.execute("UPDATE embeddings SET checksum = NULL")
    assert cache.peek("f1", [b"a", b"b"]).keys() == cache.peek_numbers("f1", [b"a", b"b"]).keys() == {b"b"}
    assert cache.find("f1", [b"a", b"b"]).keys() == {b"b"}
    assert cache._sql.execute("SELECT count(*) FROM embeddings").fetchone() == (1,)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_flipped_bit_is_noticed(tmp_path: Path, clock: SetClock, precision: Precision) -> None:
    with closing(SqliteCache(tmp_path / "embeddings.db", clock, precision=precision)) as cache:
        cache.keep("f1", {b"a": VECTOR, b"b": VECTOR})
        (kept,) = cache._sql.execute("SELECT vector FROM embeddings WHERE text_hash = ?", (b"a",)).fetchone()
        blob = bytearray(kept)
        blob[-1] ^= 0x80  # the sign: the length stays what it was
        cache._sql.execute("UPDATE embeddings SET vector = ? WHERE text_hash = ?", (bytes(blob), b"a"))
        assert cache.find("f1", [b"a", b"b"]).keys() == {b"b"}
        assert cache._sql.execute("SELECT count(*) FROM embeddings").fetchone() == (1,)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_file_that_an_older_memoryd_wrote_is_used_on_and_laid_anew_by_the_next_prune(
    tmp_path: Path, clock: SetClock, precision: Precision
) -> None:
    path = tmp_path / "embeddings.db"
    with gzip.open(OLD) as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    drawn = np.random.default_rng(11).normal(size=(60, 24)).astype(np.float32)  # what it was made of
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    hashes = [f"text {number}".encode() for number in range(60)]
    with closing(sqlite3.connect(path)) as sql:
        before = sql.execute("SELECT sql FROM sqlite_schema WHERE name = 'embeddings'").fetchone()[0]
    assert "fingerprint TEXT" in before
    with closing(SqliteCache(path, clock, precision=precision)) as cache:
        for _ in range(2):  # as it was, and laid anew
            for name, half in (("0123456789abcdef", slice(0, 40)), ("another one", slice(40, 60))):
                assert cache.find_all(name, hashes)[0] == [half.start <= place < half.stop for place in range(60)]
                matrix = cache.find_all(name, hashes[half])[1]
                assert np.array_equal(shrink(matrix), shrink(drawn[half]))
                if precision == "float32":
                    assert np.array_equal(matrix, drawn[half])
            assert cache.prune(hashes, unused_days=30) == 0
        blobs = cache._sql.execute("SELECT DISTINCT length(vector), is_small FROM embeddings").fetchall()
        assert blobs == ([(24, 1)] if precision == "int8" else [(96, 0)])
        assert {row[0] for row in cache._sql.execute("SELECT DISTINCT fingerprint FROM embeddings")} == {1, 2}
        assert cache.forget("another one") == 20


def test_what_others_share_stays_in_32_bits(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "embeddings.db"
    with closing(SqliteCache(path, clock)) as first:
        vectors = fill(first, 10)
    widen(path)
    with closing(SqliteCache(path, clock, precision="int8")) as cache:
        cache.prune([], unused_days=30, is_shared=True)
    with closing(SqliteCache(path, clock)) as cache:
        found = cache.find("f1", list(vectors))
        assert all(np.array_equal(found[key], vector) for key, vector in vectors.items())


def test_row_that_is_not_as_it_was_kept_is_not_shrunk_but_dropped(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "embeddings.db"
    with closing(SqliteCache(path, clock)) as first:
        first.keep("f1", {b"a": VECTOR, b"b": VECTOR, b"c": VECTOR})
        first._sql.execute("UPDATE embeddings SET vector = zeroblob(8) WHERE text_hash = ?", (b"a",))
        first._sql.execute("UPDATE embeddings SET checksum = NULL WHERE text_hash = ?", (b"b",))
    with closing(SqliteCache(path, clock, precision="int8")) as cache:
        cache.prune([b"a", b"b", b"c"], unused_days=30)
        assert cache.find("f1", [b"a", b"b", b"c"]).keys() == {b"b", b"c"}
        assert cache._sql.execute("SELECT count(*), count(checksum) FROM embeddings").fetchone() == (2, 2)


@pytest.mark.parametrize("point", ["cache.pack.before", "cache.pack.after"])
@pytest.mark.parametrize("age", [scatter, widen])
def test_laying_anew_that_fails_leaves_all_rows_and_is_done_the_next_time(
    tmp_path: Path, clock: SetClock, age: Callable[[Path], None], point: str
) -> None:
    path = tmp_path / "embeddings.db"
    with closing(SqliteCache(path, clock)) as first:
        vectors = fill(first, 1000)
    age(path)
    with closing(SqliteCache(path, clock, precision="int8")) as cache:
        arm(f"{point}=full")
        try:
            with pytest.raises(StoreFull):
                cache.prune(vectors, unused_days=30)
        finally:
            arm("")
        is_found, matrix = cache.find_all("f1", list(vectors))
        assert all(is_found)
        assert np.array_equal(shrink(matrix), shrink(np.stack(list(vectors.values()))))
        cache.prune(vectors, unused_days=30)
        assert cache.bytes_on_disk() < 2 * 1000 * 384


def test_full_disk_while_rows_are_laid_anew_leaves_them_as_they_were(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "embeddings.db"
    with closing(SqliteCache(path, clock)) as first:
        vectors = fill(first, 1000)
    widen(path)
    with closing(SqliteCache(path, clock, precision="int8")) as cache:
        (pages,) = cache._sql.execute("PRAGMA page_count").fetchone()
        cache._sql.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StoreFull):
            cache.prune(vectors, unused_days=30)
        assert cache.find("f1", list(vectors)).keys() == vectors.keys()


def test_cache_from_before_checksums_is_used_on(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "embeddings.db"
    with closing(sqlite3.connect(path)) as old:
        old.execute(
            "CREATE TABLE embeddings (fingerprint TEXT NOT NULL, text_hash BLOB NOT NULL, vector BLOB NOT NULL,"
            " used_day INTEGER NOT NULL, PRIMARY KEY (fingerprint, text_hash)) WITHOUT ROWID"
        )
        old.execute("INSERT INTO embeddings VALUES ('f1', ?, ?, 1)", (b"a", VECTOR.tobytes()))
        old.commit()
    cache = SqliteCache(path, clock)
    assert np.array_equal(cache.find("f1", [b"a"])[b"a"], VECTOR)
    cache.keep("f1", {b"b": VECTOR})
    assert cache.find("f1", [b"a", b"b"]).keys() == {b"a", b"b"}
    cache.close()


def test_cache_begun_anew_is_empty_under_the_same_object(cache: SqliteCache, tmp_path: Path) -> None:
    cache.keep("f1", {b"a": VECTOR})
    cache.begin_anew(lambda: cache.path.rename(tmp_path / "away.db"))
    assert cache.find("f1", [b"a"]) == {}
    cache.keep("f1", {b"b": VECTOR})
    assert cache.find("f1", [b"b"]).keys() == {b"b"}


def test_missing_folder_is_unavailable(tmp_path: Path, clock: SetClock) -> None:
    with pytest.raises(StoreUnavailable):
        SqliteCache(tmp_path / "missing" / "embeddings.db", clock)


def test_closed_cache_says_so(tmp_path: Path, clock: SetClock) -> None:
    cache = SqliteCache(tmp_path / "embeddings.db", clock)
    cache.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        cache.find("f1", [b"a"])


def test_bytes_on_disk_grow_with_what_is_kept(cache: SqliteCache) -> None:
    before = cache.bytes_on_disk()
    cache.keep("f1", {f"{number}".encode(): np.zeros(384, np.float32) for number in range(100)})
    assert cache.bytes_on_disk() > before > 0


def test_no_more_is_kept_of_what_is_not_used_than_of_what_is(cache: SqliteCache, clock: SetClock) -> None:
    for number in range(2000):
        cache.keep("f1", {f"old {number}".encode(): VECTOR})
    clock.move(DAY)
    used = {f"used {number}".encode(): VECTOR for number in range(600)}
    cache.keep("f1", used | {b"unused today": VECTOR})
    assert cache.prune(used, unused_days=30) == 2001 - 600
    assert len(cache.find("f1", list(used))) == 600
    assert cache.find("f1", [b"unused today"])  # the last used stay
    assert cache.prune(used, unused_days=30) == 0


def test_small_memory_keeps_some_of_what_it_does_not_use(cache: SqliteCache) -> None:
    cache.keep("f1", {f"old {number}".encode(): VECTOR for number in range(2000)})
    assert cache.prune([], unused_days=30) == 2000 - 512


def test_cache_that_others_use_too_is_pruned_by_age_alone(cache: SqliteCache, clock: SetClock) -> None:
    cache.keep("f1", {f"theirs {number}".encode(): VECTOR for number in range(2000)})
    assert cache.prune([], unused_days=30, is_shared=True) == 0
    clock.move(31 * DAY)
    assert cache.prune([], unused_days=30, is_shared=True) == 2000


def test_pruned_cache_gives_its_space_back(cache: SqliteCache, clock: SetClock) -> None:
    vector = np.zeros(384, np.float32)
    cache.keep("f1", {f"{number}".encode(): vector for number in range(5000)})
    before = cache.bytes_on_disk()
    cache.prune([], unused_days=30)
    assert cache.bytes_on_disk() < before / 8  # about a tenth of the rows is left


def test_looking_is_not_using(cache: SqliteCache, clock: SetClock) -> None:
    cache.keep("f1", {b"a": VECTOR})
    clock.move(31 * DAY)
    assert np.array_equal(cache.peek("f1", [b"a", b"b"])[b"a"], VECTOR)
    assert cache.prune([], unused_days=30) == 1


def fill(cache: SqliteCache, rows: int) -> dict[bytes, Vectors]:
    drawn = np.random.default_rng(3).normal(size=(rows, 384)).astype(np.float32)
    vectors = {f"text {number}".encode(): vector for number, vector in enumerate(drawn)}
    cache.keep("f1", vectors)
    cache._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return vectors


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows_take_little_more_disk_than_their_numbers(tmp_path: Path, clock: SetClock, precision: Precision) -> None:
    with closing(SqliteCache(tmp_path / "embeddings.db", clock, precision=precision)) as cache:
        rows = len(fill(cache, 2000))
        assert cache.path.stat().st_size < 1.35 * rows * 384 * (1 if precision == "int8" else 4)


def test_cache_from_before_rows_were_packed_is_used_on_and_packed_by_the_next_prune(
    tmp_path: Path, clock: SetClock
) -> None:
    path = tmp_path / "embeddings.db"
    with closing(SqliteCache(path, clock)) as first:
        vectors = fill(first, 1000)
    scatter(path)
    with closing(SqliteCache(path, clock)) as cache:
        before = cache.bytes_on_disk()
        assert cache.find("f1", list(vectors)).keys() == vectors.keys()
        assert cache.prune(vectors, unused_days=30) == 0
        assert cache.bytes_on_disk() < before / 2
        found = cache.find("f1", list(vectors))
        assert all(np.array_equal(found[key], vector) for key, vector in vectors.items())


def test_cache_that_somebody_reads_is_packed_all_the_same(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "embeddings.db"
    with closing(SqliteCache(path, clock)) as first:
        vectors = fill(first, 1000)
    scatter(path)
    with closing(SqliteCache(path, clock)) as cache, closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT count(*) FROM embeddings").fetchone()
        before = cache.bytes_on_disk()
        cache.prune(vectors, unused_days=30)
        assert cache.bytes_on_disk() < before / 2
        assert cache.find("f1", list(vectors)).keys() == vectors.keys()


def test_log_is_folded_back_unless_somebody_reads_what_was_before(cache: SqliteCache) -> None:
    log = cache.path.with_name("embeddings.db-wal")
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM embeddings").fetchone() == (0,)
        cache.keep("f1", {b"a": VECTOR})
        assert not cache.checkpoint()
        assert log.stat().st_size > 0
        reader.execute("ROLLBACK")
    assert cache.checkpoint()
    assert log.stat().st_size == 0
    cache.keep("f1", {b"b": VECTOR})
    assert cache.find("f1", [b"a", b"b"]).keys() == {b"a", b"b"}


def test_many_are_found_in_the_order_in_which_they_are_asked_for(cache: SqliteCache) -> None:
    vectors = fill(cache, 3)
    keys = [b"text 2", b"unknown", b"text 0", b"text 2"]
    is_found, matrix = cache.find_all("f1", keys)
    assert is_found == [True, False, True, True]
    assert np.array_equal(matrix, np.stack([vectors[key] for key in keys if key in vectors]))
    assert cache.find_all("f1", [b"unknown"])[0] == [False]
