"""Vectors in a bucket: an S3-compatible server as a process, a door before it, and the engine on real stores."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pytest
from pyarrow.fs import FileSelector, S3FileSystem

from memoryd.daemon.config import Store
from memoryd.daemon.engine import Engine
from memoryd.store.errors import VectorsAway
from memoryd.store.lance import drop_table, known_fingerprints
from memoryd.store.vectors import LanceVectors
from tests.support.clock import SetClock
from tests.support.engine import Memory
from tests.support.fake_embedder import FakeEmbedder
from tests.support.s3 import BUCKET, KEY_ID, SECRET, S3Server, run_s3, s3_place, storage_options
from tests.support.tcp_proxy import Door
from tests.support.waiting import eventually

QUICK = {"connect_timeout": "1s", "timeout": "1s"}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def door(s3: S3Server) -> Iterator[Door]:
    with Door(s3.port).running() as door:
        yield door


class Far:
    """A memory whose vectors are in a bucket behind a door, at a time of the test's own."""

    def __init__(self, folder: Path, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
        self.door = door
        self.memory = Memory(folder)
        self.clock = SetClock(1_800_000_000.0)
        self.memory.clock = self.clock
        self.secret = folder / "secret"
        self.secret.write_text(SECRET)
        self.uri = f"s3://{BUCKET}/{folder.name}"
        monkeypatch.setenv("TEST_S3_KEY_ID", KEY_ID)
        self.configure(self.uri)

    def configure(self, uri: str) -> None:
        options = {
            **storage_options(self.door.port, **QUICK),
            "access_key_id": "env:TEST_S3_KEY_ID",
            "secret_access_key": f"file:{self.secret}",
        }
        told = tuple(f"{name} = {value}" for name, value in options.items())
        self.memory.configure(store=Store(vectors_uri=uri, storage_options=told))

    @contextmanager
    def running(self) -> Iterator[Engine]:
        with self.memory.running() as engine:
            yield engine

    def pass_time(self, seconds: float) -> None:
        """Let the time pass, and the lane do what is due at it."""
        self.clock.move(seconds)
        self.memory.live.queue.notify()

    def wait_until_held(self) -> None:
        eventually(lambda: self.memory.live.place.outage.hold(), what="the bucket is held back")

    def in_sync(self) -> bool:
        return not self.memory.live.verifier.verify().drift


@pytest.fixture
def far(tmp_path: Path, door: Door, monkeypatch: pytest.MonkeyPatch) -> Far:
    return Far(tmp_path, door, monkeypatch)


def held(far: Far) -> set[int]:
    """What the bucket holds, asked past memoryd."""
    database = lancedb.connect(far.uri, storage_options=storage_options(far.door.port))
    name = max(database.list_tables().tables)
    return set(database.open_table(name).to_arrow()["id"].to_pylist())


def test_vectors_are_in_the_bucket_and_nothing_but_numbers(far: Far) -> None:
    far.memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    with far.running() as engine:
        far.memory.settle()
        generation = engine.semantics.serving().generation
        assert held(far) == set(engine.generations.marked(generation.id).tolist()) != set()
        assert not (far.memory.data / "vectors").exists()
        database = lancedb.connect(far.uri, storage_options=storage_options(far.door.port))
        table = database.open_table(f"vectors_{generation.fingerprint}")
        assert {field.name: str(field.type) for field in table.schema} == {
            "id": "int64",
            "document": "int64",
            "vector": f"fixed_size_list<item: int8>[{generation.dimension}]",
        }
        stores = far.memory.status()["stores"]
        assert (stores["vectors_place"], stores["vectors_remote"]) == (far.uri, True)
        assert stores["vectors"]["rows"] == len(held(far))
        assert far.in_sync()


def test_queries_and_status_ask_nothing_of_the_bucket(far: Far) -> None:
    far.memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    with far.running():
        far.memory.settle()
        before = far.door.tries
        for _ in range(20):
            answer = far.memory.search("kettle")
            assert answer["results"]
            assert answer["degraded"] is None
        assert far.memory.status()["stores"]["vectors"]["rows"] == 1
        assert far.door.tries == before


@pytest.mark.parametrize("how", ["shut", "hang"])
def test_outage_leaves_words_and_loses_nothing(far: Far, how: str) -> None:
    memory = far.memory
    memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    with far.running() as engine:
        memory.settle()
        getattr(far.door, how)()
        for number in range(12):
            memory.write(f"memory/{number}.md", f"The gauge of station {number} was read.\n")
        (memory.root / "memory/tea.md").unlink()
        engine.look_at_disk()
        far.wait_until_held()
        before = far.door.tries
        for _ in range(0, 600, 40):  # ten minutes
            far.pass_time(40.0)
            far.wait_until_held()  # asked again where that was due, and failed again
            assert memory.found("gauge station 7"), "words are found all the same"
        answer = memory.search("gauge station 7")
        assert "cannot be reached" in answer["degraded"]["reason"]
        assert far.uri in answer["degraded"]["reason"]
        assert far.door.tries - before <= 20
        assert "vectors_away" in memory.health()
        assert engine.queue.failures() == []  # it is not the notes' fault: none is parked, none has used up a try
        assert engine.is_current(), "who waits for the index does not wait for the bucket"

        far.door.open()
        far.pass_time(300.0)
        eventually(lambda: engine.place.outage.trouble() is None, what="the bucket is asked again")
        memory.settle()
        generation = engine.semantics.serving().generation
        totals = engine.documents.totals("notes", generation.id)
        assert totals.vectors == totals.passages == 12
        assert held(far) == set(engine.generations.marked(generation.id).tolist())
        assert far.in_sync()
        assert memory.health() == []
        assert memory.search("gauge station 7")["degraded"] is None


def test_start_without_the_bucket_searches_by_words_and_comes_up_when_it_is_back(far: Far) -> None:
    memory = far.memory
    memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    far.door.shut()
    with far.running() as engine:
        eventually(lambda: engine.semantics.status().state == "failed", what="the bucket is away")
        eventually(lambda: memory.found("kettle"), what="words are found")
        assert "cannot be reached" in memory.search("kettle")["degraded"]["reason"]
        assert "embedder_failed" in memory.health()
        far.door.open()
        engine.place.outage.release()
        engine.semantics.retry_now()
        eventually(engine.semantics.ready, what="the bucket is back")
        memory.settle()
        assert memory.search("kettle")["degraded"] is None
        assert len(held(far)) == 1


def test_bucket_that_is_not_there_and_a_key_that_is_missing_name_their_remedy(far: Far) -> None:
    memory = far.memory
    memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    far.configure("s3://nobody-made-this/memory")
    with far.running() as engine:
        eventually(lambda: engine.semantics.status().state == "failed", what="there is no such bucket")
        status = engine.semantics.status()
        assert "there is no such bucket" in (status.reason or "")
        assert "store.vectors_uri" in (status.hint or "")
        assert engine.healer.incidents() == [], "what cannot be looked at is not damaged"
    far.configure(far.uri)
    far.secret.unlink()
    far.clock.move(1000)
    with far.running() as engine:
        eventually(lambda: engine.semantics.status().state == "failed", what="there is no key")
        status = engine.semantics.status()
        assert str(far.secret) in (status.reason or "")
        assert "store.storage_options" in (status.hint or "")
        far.secret.write_text(SECRET)
        far.clock.move(1000)
        engine.semantics.retry_now()
        eventually(engine.semantics.ready, what="the key is read again")


def test_no_key_is_told_anywhere(far: Far, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    memory = far.memory
    memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    with far.running() as engine:
        memory.settle()
        far.door.shut()
        memory.write("memory/gauge.md", "The gauge was read.\n")
        engine.look_at_disk()
        far.wait_until_held()
        told = json.dumps([memory.status(), memory.search("gauge")]) + repr(engine.place) + repr(engine.config)
        far.door.open()
    output = capfd.readouterr()
    for secret in (SECRET, KEY_ID):
        assert secret not in told + output.out + output.err + caplog.text


def test_lost_table_is_filled_again_from_the_cache(far: Far) -> None:
    memory = far.memory
    memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    with far.running() as engine:
        memory.settle()
        fingerprint = engine.semantics.serving().generation.fingerprint
        drop_table(s3_place(far.door.port, Path(far.uri).name), fingerprint)
        embedded = len(memory.embedder.texts)
        memory.write("memory/gauge.md", "The gauge was read.\n")
        memory.look()
        engine.queue.enqueue("maintain")  # what is lost may be met by a write, and is met by this at the latest
        eventually(lambda: engine.healer.incidents(), what="the loss is noticed")
        memory.settle()
        eventually(lambda: len(held(far)) == 2, what="both are in the bucket")
        assert far.in_sync()
        assert memory.embedder.texts[embedded:] == ["The gauge was read."]
        (incident,) = engine.healer.incidents()
        assert incident.folder == f"{far.uri}/vectors_{fingerprint}.lance"


def test_damaged_table_is_left_where_it_is_and_another_one_is_filled(far: Far, s3: S3Server) -> None:
    memory = far.memory
    memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    memory.index()
    place = s3_place(far.door.port, Path(far.uri).name)
    (fingerprint,) = known_fingerprints(place)
    bucket = S3FileSystem(
        access_key=KEY_ID,
        secret_key=SECRET,
        endpoint_override=f"127.0.0.1:{s3.port}",
        scheme="http",
        region="us-east-1",
    )
    folder = f"{BUCKET}/{Path(far.uri).name}/vectors_{fingerprint}.lance/_versions"
    for file in bucket.get_file_info(FileSelector(folder)):
        with bucket.open_output_stream(file.path) as written:
            written.write(b"garbage")
    with far.running() as engine:
        memory.settle()
        eventually(engine.semantics.ready, what="it is begun anew")
        memory.settle()
        assert far.in_sync()
        assert memory.search("kettle")["degraded"] is None
        names = lancedb.connect(far.uri, storage_options=storage_options(far.door.port)).list_tables().tables
        assert sorted(names) == [f"vectors_{fingerprint}", f"vectors_{fingerprint}-2"]
    with far.running() as engine:  # the next start finds the later one
        memory.settle()
        assert len(engine.semantics.index().ids()) == 1
        assert len(engine.healer.incidents()) == 1


def test_generation_that_is_no_longer_used_is_dropped_from_the_bucket(far: Far) -> None:
    memory = far.memory
    memory.write("memory/tea.md", "The kettle whistles at noon.\n")
    with far.running() as engine:
        memory.settle()
        memory.switch(FakeEmbedder(fingerprint="other"))
        eventually(lambda: engine.semantics.status().fingerprint == "other", what="the other model is searched by")
        memory.settle()
        engine.queue.enqueue("prune")
        eventually(lambda: "prune" not in engine.queue.waiting_kinds(), what="the former one is dropped")
        assert known_fingerprints(engine.place) == {"other"}


WRITER = """
import json, sys
import numpy as np
import structlog
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
from memoryd.store.place import VectorPlace
from memoryd.store.vectors import LanceVectors
uri, options = sys.argv[1], json.loads(sys.argv[2])
theirs = LanceVectors(VectorPlace(uri, lambda: options), "f", 4)
print("ready", flush=True)
for number in range(12):
    sys.stdin.readline()
    theirs.upsert([1000 + number, 5], [2, 2], np.eye(4, dtype=np.float32)[:2])
    if number % 4 == 3:
        theirs.compact()
    print("written", flush=True)
"""


def test_two_processes_that_write_to_one_table_lose_nothing(s3: S3Server, tmp_path: Path) -> None:
    """Each commit is made on top of one that the other does not know of."""
    place = s3_place(s3.port, tmp_path.name)
    ours = LanceVectors(place, "f", 4)
    other = subprocess.Popen(
        [sys.executable, "-c", WRITER, place.uri, json.dumps(place.options())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin
    assert other.stdout
    try:
        assert other.stdout.readline() == "ready\n"
        for number in range(12):
            other.stdin.write("\n")
            other.stdin.flush()  # both write at the same moment
            ours.upsert([number, 5], [1, 1], np.eye(4, dtype=np.float32)[2:])
            if number % 5 == 4:
                ours.compact()
            assert other.stdout.readline() == "written\n"
        assert other.wait(30) == 0
    finally:
        other.kill()
        other.communicate()
    ours.reopen()
    assert ours.ids() == {*range(12), *range(1000, 1012)}  # 5 may be there twice: `verify` finds that, and repairs it


def test_what_another_writer_did_to_the_table_is_found_and_healed(far: Far) -> None:
    memory = far.memory
    for number in range(4):
        memory.write(f"memory/{number}.md", f"The gauge of station {number} was read.\n")
    with far.running() as engine:
        memory.settle()
        ours = held(far)
        theirs = LanceVectors(s3_place(far.door.port, Path(far.uri).name), "fake", 128)
        theirs.delete(sorted(ours)[:2])
        theirs.upsert([7, 8], [1, 1], np.eye(128, dtype=np.float32)[:2])
        theirs.compact()  # and what we had open is no more
        memory.write("memory/new.md", "The kettle whistles at noon.\n")
        memory.look()
        eventually(lambda: not engine.verifier.verify(repair=True).drift, what="it is healed")
        assert held(far) > ours
        assert held(far) == set(engine.generations.marked(engine.semantics.serving().generation.id).tolist())
        assert engine.healer.incidents() == [], "nothing was damaged"


def test_hold_grows_and_a_refusal_is_told_at_once(tmp_path: Path, door: Door) -> None:
    clock = SetClock()
    place = s3_place(door.port, tmp_path.name, QUICK, clock=clock)
    index = LanceVectors(place, "f", 4)
    door.shut()
    waits = []
    for _ in range(3):
        with pytest.raises(VectorsAway):
            index.upsert([1], [1], np.eye(4, dtype=np.float32)[:1])
        before = door.tries
        with pytest.raises(VectorsAway, match="cannot be reached"):
            index.delete([1])  # not asked for: no request
        assert door.tries == before
        hold = place.outage.hold()
        assert hold
        waits.append(hold.until - clock())
        clock.move(waits[-1])
    assert waits == [2.0, 4.0, 8.0]
    door.open()
    index.upsert([1], [1], np.eye(4, dtype=np.float32)[:1])
    assert place.outage.trouble() is None
    assert index.ids() == {1}


def refused(port: int, uri_folder: str, **options: Any) -> VectorsAway:
    with pytest.raises(VectorsAway) as caught:
        LanceVectors(s3_place(port, uri_folder, options), "f", 4)
    return caught.value


def test_key_that_is_denied_is_told_with_its_remedy(tmp_path: Path) -> None:
    """The server asks for keys that it knows, and it knows none."""
    with run_s3(tmp_path, INITIAL_NO_AUTH_ACTION_COUNT="1") as strict:
        error = refused(strict.port, "denied")
        assert error.lasting
        assert "the key is not accepted" in error.message
        assert "store.storage_options" in (error.hint or "")
        assert KEY_ID not in error.message
        assert error.__cause__ is None, "the server's own words are not passed on"
