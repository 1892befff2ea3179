from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.store.database import Database
from memoryd.store.errors import MemorydError, SchemaTooNew, StoreCorrupt, StoreFull, StoreUnavailable
from memoryd.store.keywords import TABLES, count_segments
from memoryd.store.schema import migrate, migrations
from memoryd.store.search.legs import trigram_leg
from memoryd.store.search.query import build_query
from memoryd.store.search.visibility import Visible
from memoryd.store.sqlite_file import connect
from tests.support.documents import make_document
from tests.support.ledger import Ledger, check_ledger, open_ledger
from tests.support.privileges import public_folder, unprivileged

GOLDEN = Path(__file__).with_name("schema.sql")


def value_of(database: Database, key: str) -> str | None:
    with database.read() as sql:
        row = sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def schema_of(sql: sqlite3.Connection) -> str:
    """Every table, view and index; not the tables that FTS5 makes for itself, which follow SQLite's version."""
    rows = sql.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'chunks_fts_%' ORDER BY type, name"
    )
    return "".join(f"{row[0]};\n\n" for row in rows)


# -- the schema -----------------------------------------------------------------------------------------------


def test_migrated_schema_is_the_golden_one(ledger: Ledger) -> None:
    """After a migration: look at the difference, then write the new schema to schema.sql."""
    with ledger.database.read() as sql:
        assert schema_of(sql) == GOLDEN.read_text(encoding="utf-8")


def test_opening_again_changes_nothing(ledger_path: Path) -> None:
    with open_ledger(ledger_path) as first:
        first.put(make_document("memory/a.md", "some words\n"))
        version = first.database.schema_version()
    with open_ledger(ledger_path) as second:
        assert second.database.schema_version() == version == len(migrations())
        assert second.rows("chunks") == 1


def test_migrations_run_in_order_from_where_the_file_is(tmp_path: Path) -> None:
    connection = connect(tmp_path / "x.db")
    migrate(connection, ["CREATE TABLE a (x);"])
    migrate(connection, ["SELECT this would fail;", "CREATE TABLE b (x); INSERT INTO b VALUES (1);"])
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert connection.execute("SELECT x FROM b").fetchall() == [(1,)]
    connection.close()


def test_broken_migration_leaves_the_version_before_it(tmp_path: Path) -> None:
    connection = connect(tmp_path / "x.db")
    steps = ["CREATE TABLE a (x);", "CREATE TABLE b (x); INSERT INTO a VALUES (1); CREATE TABLE a (x);"]
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(connection, steps)
    assert not connection.in_transaction
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("a",)]
    assert connection.execute("SELECT * FROM a").fetchall() == []
    connection.close()


def test_documents_from_before_scopes_are_nobodys_until_they_are_read_again(ledger_path: Path) -> None:
    """A query with a scope must not see what nobody has looked at for whom it is."""
    connection = connect(ledger_path)
    migrate(connection, migrations()[:1])
    connection.execute(
        "INSERT INTO documents VALUES (1, 'home', 'a.md', 'memory', 's', 'h', 1, NULL, 1, '', '{}', '[]', NULL, 0)"
    )
    connection.close()
    with open_ledger(ledger_path) as ledger, ledger.database.read() as sql:
        assert sql.execute("SELECT path, scope FROM documents").fetchall() == [("a.md", "unknown")]


def test_migration_may_end_in_a_comment(tmp_path: Path) -> None:
    connection = connect(tmp_path / "x.db")
    migrate(connection, ["CREATE TABLE a (x); -- the end"])
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()


def test_ledger_of_a_newer_memoryd_is_refused_and_left_alone(ledger_path: Path) -> None:
    with open_ledger(ledger_path) as ledger, ledger.database.write() as sql:
        sql.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    with pytest.raises(SchemaTooNew) as caught:
        Database(ledger_path)
    assert caught.value.hint
    connection = connect(ledger_path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(migrations()) + 1,)
    connection.close()


def test_other_folding_rebuilds_the_keyword_index(ledger_path: Path) -> None:
    with open_ledger(ledger_path) as ledger:
        ledger.put(make_document("memory/a.md", "Straße\n"))
        with ledger.database.write() as sql:  # as another version would have left it
            sql.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')")
            sql.execute("INSERT INTO chunks_fts (rowid, heading, text) SELECT id, '', 'otherwise' FROM chunks")
            sql.execute("UPDATE meta SET value = 'another' WHERE key = 'fold_version'")
    with open_ledger(ledger_path) as ledger:
        check_ledger(ledger.database)
        with ledger.database.read() as sql:
            assert len(trigram_leg(sql, build_query("STRASSE"), 10, Visible()).ranking) == 1
            assert trigram_leg(sql, build_query("otherwise"), 10, Visible()).ranking == {}


def test_rebuilt_keyword_index_lies_in_one_piece(ledger_path: Path) -> None:
    """FTS5 leaves one for each megabyte or so that it has read, and every search looks into each."""
    with open_ledger(ledger_path) as ledger:
        texts = (" ".join(f"word{100 * line + place}" for place in range(100)) + "\n" for line in range(1500))
        ledger.put(make_document("memory/a.md", *texts))
        with ledger.database.write() as sql:
            sql.execute("DELETE FROM meta WHERE key = 'fold_version'")
    with open_ledger(ledger_path) as ledger, ledger.database.read() as sql:
        assert [count_segments(sql, table) for table in TABLES] == [1, 1]


def test_remember_tells_whether_a_fact_changed(ledger: Ledger) -> None:
    assert ledger.database.remember("splitting", "1")
    assert not ledger.database.remember("splitting", "1")
    assert ledger.database.remember("splitting", "2")


# -- transactions ---------------------------------------------------------------------------------------------


def test_exception_undoes_the_whole_transaction(ledger: Ledger) -> None:
    def fail_half_way() -> None:
        with ledger.database.write() as sql:
            sql.execute("INSERT INTO meta VALUES ('a', '1')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert value_of(ledger.database, "a") is None
    ledger.database.remember("a", "2")
    assert value_of(ledger.database, "a") == "2"


def test_nested_write_is_part_of_the_outer_one(ledger: Ledger) -> None:
    def fail_after_a_nested_write() -> None:
        with ledger.database.write():
            ledger.database.remember("a", "1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_a_nested_write()
    assert value_of(ledger.database, "a") is None


def test_nested_read_sees_the_outer_snapshot(ledger: Ledger) -> None:
    with ledger.database.read() as sql:
        assert sql.execute("SELECT count(*) FROM meta WHERE key = 'a'").fetchone() == (0,)
        ledger.database.remember("a", "1")
        assert value_of(ledger.database, "a") is None
    assert value_of(ledger.database, "a") == "1"


def test_lent_snapshot_is_what_another_thread_reads(ledger: Ledger) -> None:
    seen: list[str | None] = []

    def read(lent: sqlite3.Connection) -> None:
        with ledger.database.lent(lent):
            seen.append(value_of(ledger.database, "a"))
        seen.append(value_of(ledger.database, "a"))  # given back: one of its own

    with ledger.database.read() as sql:
        sql.execute("SELECT * FROM meta").fetchall()
        ledger.database.remember("a", "1")
        reader = threading.Thread(target=read, args=(sql,))
        reader.start()
        reader.join(30)
    assert seen == [None, "1"]


def test_reader_neither_waits_for_a_writer_nor_sees_what_is_not_committed(ledger: Ledger) -> None:
    with ledger.database.write() as sql:
        sql.execute("INSERT INTO meta VALUES ('a', '1')")
        seen: list[str | None] = []
        reader = threading.Thread(target=lambda: seen.append(value_of(ledger.database, "a")))
        reader.start()
        reader.join(30)
        assert seen == [None]
    assert value_of(ledger.database, "a") == "1"


def test_writer_does_not_wait_for_a_reader(ledger: Ledger) -> None:
    with ledger.database.read() as sql:
        sql.execute("SELECT count(*) FROM meta").fetchone()
        ledger.database.remember("a", "1")
    assert value_of(ledger.database, "a") == "1"


def test_state_is_the_same_until_something_is_written(ledger: Ledger) -> None:
    before = ledger.database.state()
    assert before is not None
    with ledger.database.read() as sql:
        sql.execute("SELECT count(*) FROM chunks").fetchone()
        assert ledger.database.state() is None, "of an older snapshot nothing can be said"
    assert ledger.database.state() == before
    ledger.database.remember("key", "value")
    assert ledger.database.state() not in (before, None)


def test_there_is_no_state_while_somebody_writes(ledger: Ledger) -> None:
    """Else what a reader finds, who does not see it yet, would be taken for what there is afterwards."""
    told: list[object] = []
    with ledger.database.write() as sql:
        sql.execute("INSERT INTO meta VALUES ('key', 'value')")
        asking = threading.Thread(target=lambda: told.append(ledger.database.state()))
        asking.start()
        asking.join()
    assert told == [None]
    assert ledger.database.state() is not None


def test_writers_take_turns(ledger: Ledger) -> None:
    ledger.database.remember("count", "0")

    def add() -> None:
        for _ in range(20):
            with ledger.database.write() as sql:
                sql.execute("UPDATE meta SET value = value + 1 WHERE key = 'count'")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert value_of(ledger.database, "count") == "80"


def test_short_lived_threads_leave_no_connections_behind(ledger: Ledger) -> None:
    for _ in range(30):
        thread = threading.Thread(target=lambda: value_of(ledger.database, "a"))
        thread.start()
        thread.join(30)
    descriptors = [link for link in Path("/proc/self/fd").iterdir() if link.exists()]
    ours = [link for link in descriptors if link.resolve() == ledger.database.path.resolve()]
    assert len(ours) <= 3


def test_checkpoint_folds_the_log_back(ledger: Ledger) -> None:
    log = ledger.database.path.with_name("ledger.db-wal")
    ledger.put(make_document("memory/a.md", "words " * 1000))
    assert log.stat().st_size > 0
    ledger.database.checkpoint()
    assert log.stat().st_size == 0
    assert ledger.rows("chunks") == 1


def test_checkpoint_that_is_not_patient_waits_for_no_reader(ledger: Ledger) -> None:
    log = ledger.database.path.with_name("ledger.db-wal")
    ledger.database._writer.execute("PRAGMA busy_timeout = 400")
    with ledger.database.read() as sql:
        assert sql.execute("SELECT count(*) FROM chunks").fetchone() == (0,)
        ledger.put(make_document("memory/a.md", "words " * 1000))
        began = time.monotonic()
        assert not ledger.database.checkpoint(patient=False)
        hurried = time.monotonic() - began
        began = time.monotonic()
        assert not ledger.database.checkpoint()
        assert hurried < (time.monotonic() - began) / 4
        assert sql.execute("SELECT count(*) FROM chunks").fetchone() == (0,)  # its snapshot holds
    assert log.stat().st_size > 0
    assert ledger.database.checkpoint(patient=False)
    assert log.stat().st_size == 0
    assert ledger.rows("chunks") == 1


def test_bytes_on_disk_include_the_log(ledger: Ledger) -> None:
    ledger.database.checkpoint()
    before = ledger.database.bytes_on_disk()
    ledger.put(make_document("memory/a.md", "words " * 1000))
    assert ledger.database.bytes_on_disk() > before >= ledger.database.path.stat().st_size


# -- closing --------------------------------------------------------------------------------------------------


def test_closed_ledger_says_so(ledger_path: Path) -> None:
    database = Database(ledger_path)
    database.close()
    database.close()
    with pytest.raises(StoreUnavailable, match="closed"), database.read():
        pass
    with pytest.raises(StoreUnavailable, match="closed"), database.write():
        pass
    with pytest.raises(StoreUnavailable, match="closed"):
        database.checkpoint()


def test_read_under_way_outlives_the_close(ledger_path: Path) -> None:
    database = Database(ledger_path)
    reading, closed = threading.Event(), threading.Event()
    seen: list[int] = []

    def read() -> None:
        with database.read() as sql:
            reading.set()
            closed.wait(30)
            seen.append(sql.execute("SELECT count(*) FROM meta").fetchone()[0])

    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(30)
    database.close()
    closed.set()
    thread.join(30)
    assert seen == [1]
    assert not ledger_path.with_name("ledger.db-wal").exists()  # the last connection is closed, too


# -- errors ---------------------------------------------------------------------------------------------------


def test_full_disk_is_named_undoes_the_write_and_passes(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "kept words\n"))
    with ledger.database.write() as sql:
        pages = sql.execute("PRAGMA page_count").fetchone()[0]
        sql.execute(f"PRAGMA max_page_count = {pages + 2}")
    large = make_document("memory/a.md", *(f"passage {number} {'x' * 2000}\n" for number in range(50)))
    with pytest.raises(StoreFull) as caught:
        ledger.put(large)
    assert caught.value.retryable
    assert str(ledger.database.path.parent) in (caught.value.hint or "")
    assert ledger.chunk_ids().keys() == {"kept words\n"}
    with ledger.database.write() as sql:
        sql.execute("PRAGMA max_page_count = 1000000")
    ledger.put(large)
    assert ledger.rows("chunks") == 50
    check_ledger(ledger.database)


def test_garbage_file_is_corrupt_and_left_alone(ledger_path: Path) -> None:
    ledger_path.write_bytes(b"this is not a database " * 100)
    with pytest.raises(StoreCorrupt) as caught:
        Database(ledger_path)
    assert caught.value.path == ledger_path
    assert "rebuilds" in (caught.value.hint or "")
    assert ledger_path.read_bytes().startswith(b"this is not")


def test_damaged_pages_are_corrupt(ledger_path: Path) -> None:
    with open_ledger(ledger_path) as ledger:
        ledger.put(make_document("memory/a.md", *(f"passage {number}\n" for number in range(500))))
    data = bytearray(ledger_path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    ledger_path.write_bytes(data)
    with pytest.raises(StoreCorrupt), open_ledger(ledger_path) as ledger:
        ledger.documents.known("home")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"SQLite format 3\x00" + b"\xff" * 84, "not a database"),
    ],
)
def test_lost_content_is_corrupt(ledger_path: Path, content: bytes, words: str) -> None:
    Database(ledger_path).close()
    ledger_path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=words):
        Database(ledger_path)


def test_database_of_another_program_is_corrupt(ledger_path: Path) -> None:
    with closing(sqlite3.connect(ledger_path)) as other:
        other.execute(f"PRAGMA user_version = {len(migrations())}")
        other.execute("CREATE TABLE notes (text)")
    with pytest.raises(StoreCorrupt, match="lacks chunks, documents"):
        Database(ledger_path)


def test_damage_that_no_query_meets_is_found_by_a_look(ledger_path: Path) -> None:
    with open_ledger(ledger_path) as ledger:
        ledger.put(make_document("memory/a.md", *(f"passage {number} {'x' * 200}\n" for number in range(500))))
    data = bytearray(ledger_path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xa5" * 4096
    ledger_path.write_bytes(data)
    Database(ledger_path).close()  # what is read at the opening is whole
    with pytest.raises(StoreCorrupt):
        Database(ledger_path, check_s=60)
    told: list[StoreCorrupt] = []
    database = Database(ledger_path, told.append)
    with pytest.raises(StoreCorrupt):
        database.check(60)
    assert len(told) == 1
    database.close()


def test_look_for_damage_ends_in_time(ledger: Ledger) -> None:
    with ledger.database.write() as sql:
        sql.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000)"
            " INSERT INTO meta SELECT i, hex(randomblob(200)) FROM n"
        )
    assert not ledger.database.check(0.002)
    assert ledger.database.check(60)


# -- begun anew while it is used ------------------------------------------------------------------------------


def test_ledger_begun_anew_is_empty_and_whole_under_the_same_object(ledger: Ledger, tmp_path: Path) -> None:
    ledger.put(make_document("memory/a.md", "one\n"))
    away = tmp_path / "away.db"
    ledger.database.begin_anew(lambda: ledger.database.path.rename(away))
    assert ledger.rows("documents") == 0
    ledger.put(make_document("memory/b.md", "two\n"))
    assert ledger.chunk_ids().keys() == {"two\n"}
    check_ledger(ledger.database)
    with open_ledger(away) as before:
        assert before.chunk_ids().keys() == {"one\n"}


def test_reads_under_way_are_cut_off_and_none_sees_half_a_ledger(ledger: Ledger, tmp_path: Path) -> None:
    ledger.put(make_document("memory/a.md", "one\n"))
    reading = threading.Event()
    outcomes: list[str] = []

    def read() -> None:
        try:
            with ledger.database.read() as sql:
                reading.set()
                endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
                sql.execute(endless).fetchone()
        except StoreUnavailable as error:
            outcomes.append("retryable" if error.retryable else "lasting")

    def ask_meanwhile() -> None:
        with pytest.raises(StoreUnavailable, match="being rebuilt"), ledger.database.read():
            pass
        ledger.database.path.rename(tmp_path / "away.db")

    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(30)
    ledger.database.begin_anew(ask_meanwhile)
    thread.join(30)
    assert outcomes == ["retryable"]
    assert ledger.rows("documents") == 0


def test_ledger_begun_anew_has_another_state(ledger: Ledger, tmp_path: Path) -> None:
    before = ledger.database.state()
    ledger.database.begin_anew(lambda: ledger.database.path.rename(tmp_path / "away.db"))
    assert ledger.database.state() not in (before, None)


def test_ledger_that_cannot_be_begun_anew_is_refused_until_it_can(ledger: Ledger, tmp_path: Path) -> None:
    def fail() -> None:
        raise StoreFull("no space")

    with pytest.raises(StoreFull):
        ledger.database.begin_anew(fail)
    with pytest.raises(StoreUnavailable, match="being rebuilt"):
        ledger.rows("documents")
    with pytest.raises(StoreUnavailable, match="being rebuilt"):
        ledger.database.remember("a", "1")
    ledger.database.begin_anew(lambda: ledger.database.path.rename(tmp_path / "away.db"))
    assert ledger.database.remember("a", "1")


def test_damage_of_another_store_met_inside_a_transaction_is_not_the_ledgers(ledger_path: Path, tmp_path: Path) -> None:
    told: list[StoreCorrupt] = []
    database = Database(ledger_path, told.append)
    with pytest.raises(StoreCorrupt), database.read():
        raise StoreCorrupt("the vectors are", path=tmp_path / "vectors")
    assert told == []
    database.close()


def test_folder_in_the_way_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").mkdir()
    with pytest.raises(StoreUnavailable) as caught:
        Database(tmp_path / "ledger.db")
    assert caught.value.retryable


def test_missing_folder_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        Database(tmp_path / "missing" / "ledger.db")


def test_read_only_file_is_unavailable() -> None:
    with public_folder() as folder:
        Database(folder / "ledger.db").close()
        (folder / "ledger.db").chmod(0o444)
        folder.chmod(0o555)
        with unprivileged(), pytest.raises(StoreUnavailable) as caught:
            Database(folder / "ledger.db")
    assert str(folder) in (caught.value.hint or "")


def test_writing_through_a_reader_is_refused(ledger: Ledger) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"), ledger.database.read() as sql:
        sql.execute("DELETE FROM meta")


def test_ledger_locked_by_another_process_is_unavailable(ledger: Ledger) -> None:
    with ledger.database.write() as sql:
        sql.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(ledger.database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked by another process"):
        ledger.database.remember("a", "1")
    other.close()
    assert ledger.database.remember("a", "1")


def test_statement_that_sqlite_refuses_is_our_bug(ledger: Ledger) -> None:
    with pytest.raises(MemorydError, match="no such table") as caught, ledger.database.read() as sql:
        sql.execute("SELECT * FROM missing")
    assert caught.value.code == "internal"
