"""Damaged files are moved, named and bounded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryd.store.errors import StoreUnavailable
from memoryd.store.quarantine import Quarantine, folder_bytes
from tests.support.clock import SetClock
from tests.support.privileges import public_folder, unprivileged


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def damaged_file(folder: Path, text: str = "damaged", name: str = "ledger.db") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_files_are_moved_whole_and_named_with_reason_and_time(tmp_path: Path, clock: SetClock) -> None:
    quarantine = Quarantine(tmp_path / "quarantine", clock)
    log = damaged_file(tmp_path, "the log", "ledger.db-wal")
    incident = quarantine.take("ledger", [damaged_file(tmp_path), log, tmp_path / "missing"], "bytes flipped")
    place = Path(incident.folder)
    assert place.parent == tmp_path / "quarantine"
    assert place.name.endswith("-ledger")
    assert (place / "ledger.db").read_text() == "damaged"
    assert (place / "ledger.db-wal").read_text() == "the log"
    assert not log.exists()
    assert json.loads((place / "incident.json").read_text())["reason"] == "bytes flipped"
    assert Quarantine(tmp_path / "quarantine", clock).incidents() == [incident]


def test_folder_is_moved_with_all_that_is_in_it(tmp_path: Path, clock: SetClock) -> None:
    table = tmp_path / "vectors_f1.lance"
    (table / "data").mkdir(parents=True)
    damaged_file(table / "data")
    incident = Quarantine(tmp_path / "quarantine", clock).take("vectors", [table], "no manifest")
    assert (Path(incident.folder) / "vectors_f1.lance/data/ledger.db").read_text() == "damaged"
    assert not table.exists()


def test_only_the_newest_incidents_are_kept(tmp_path: Path, clock: SetClock) -> None:
    quarantine = Quarantine(tmp_path / "quarantine", clock)
    for number in range(5):
        quarantine.take("ledger", [damaged_file(tmp_path)], f"reason {number}")
        clock.move(1)
    assert [incident.reason for incident in quarantine.incidents()] == ["reason 4", "reason 3", "reason 2"]
    assert len(list((tmp_path / "quarantine").iterdir())) == 3


def test_files_beyond_the_size_go_and_what_was_wrong_stays(tmp_path: Path, clock: SetClock) -> None:
    quarantine = Quarantine(tmp_path / "quarantine", clock, kept_bytes=10_000)
    quarantine.take("ledger", [damaged_file(tmp_path, "x" * 4000)], "the first")
    clock.move(1)
    quarantine.take("ledger", [damaged_file(tmp_path, "x" * 8000)], "the second")
    clock.move(1)
    quarantine.take("ledger", [damaged_file(tmp_path, "x" * 80_000)], "the third")
    assert [incident.reason for incident in quarantine.incidents()] == ["the third", "the second", "the first"]
    assert folder_bytes(tmp_path / "quarantine") < 11_000
    kept = [path.parent.name.rpartition("-")[0] for path in (tmp_path / "quarantine").rglob("ledger.db")]
    assert len(kept) == 1


def test_two_incidents_of_one_moment_are_both_kept(tmp_path: Path, clock: SetClock) -> None:
    quarantine = Quarantine(tmp_path / "quarantine", clock)
    quarantine.take("ledger", [damaged_file(tmp_path)], "one")
    quarantine.take("embedding_cache", [damaged_file(tmp_path, name="embeddings.db")], "two")
    quarantine.take("ledger", [damaged_file(tmp_path)], "three")
    assert {incident.reason for incident in quarantine.incidents()} == {"one", "two", "three"}


def test_incident_cut_off_by_a_crash_is_no_trouble(tmp_path: Path, clock: SetClock) -> None:
    (tmp_path / "quarantine/20261116T000000.000000Z-ledger").mkdir(parents=True)
    (tmp_path / "quarantine/20261116T000000.000000Z-ledger/incident.json").write_text("{")
    assert Quarantine(tmp_path / "quarantine", clock).incidents() == []


def test_folder_that_cannot_be_written_is_unavailable_and_the_files_stay(clock: SetClock) -> None:
    with public_folder() as folder:
        file = damaged_file(folder)
        folder.chmod(0o555)
        with unprivileged(), pytest.raises(StoreUnavailable) as caught:
            Quarantine(folder / "quarantine", clock).take("ledger", [file], "damaged")
        assert file.exists()
    assert caught.value.retryable
