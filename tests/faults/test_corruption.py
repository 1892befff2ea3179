"""Damage to what memoryd keeps, met by the real daemon: it heals from the markdown, and the markdown is not touched.

`tests/integration/test_healing.py` has every kind of damage, while it runs too; here is one of each for the whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Machine, make_machine
from tests.support.soundness import check_sound, contents

NOTES = {f"memory/{number}.md": f"Lighthouse number {number}.\n" for number in range(6)}

Damage = Callable[[Path], None]  # of a data folder


def flip(file: Path) -> None:
    """Bytes in the middle that are not what they were."""
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle - 2048 : middle + 2048] = bytes(byte ^ 0xFF for byte in data[middle - 2048 : middle + 2048])
    file.write_bytes(data)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def table(data: Path) -> Path:
    (table,) = (data / "vectors").glob("*.lance")
    return table


DAMAGES: dict[str, Damage] = {
    "ledger flipped": lambda data: flip(data / "ledger.db"),
    "ledger without its log": lambda data: (data / "ledger.db-wal").unlink(),
    "cache flipped": lambda data: flip(data / "embeddings.db"),
    "vectors truncated": lambda data: cut(next((table(data) / "data").iterdir())),
    "vectors without a manifest": lambda data: shutil.rmtree(table(data) / "_versions"),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, default_model: Path, models_dir: Path) -> Iterator[Machine]:
    """A machine whose daemon was killed with all indexed, its log not folded back."""
    with make_machine(tmp_path_factory.mktemp("damage"), models_dir) as machine:
        for path, text in NOTES.items():
            machine.write(path, text)
        daemon = machine.start()
        daemon.wait_until_it_answers()
        check_sound(daemon)
        daemon.kill()
        yield machine


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_store_heals_by_itself(killed: Machine, tmp_path: Path, models_dir: Path, damage: str) -> None:
    with make_machine(tmp_path, models_dir) as machine:
        shutil.copytree(killed.root, machine.root, dirs_exist_ok=True)
        shutil.copytree(killed.data, machine.data)
        machine.data.chmod(0o700)
        DAMAGES[damage](machine.data)
        with machine.daemon() as daemon:
            proof = check_sound(daemon)
            assert proof["documents"] == len(NOTES)
            assert len(daemon.found("lighthouse")) == len(NOTES)
            if not damage.startswith("cache"):
                embedded = [event["computed"] for event in daemon.events("job_done") if event["kind"] == "embed"]
                assert sum(embedded) == 0, "what the cache holds is not embedded again"
        assert {path: (machine.root / path).read_text() for path in NOTES} == NOTES
        assert contents(machine)["jobs"] == []


@pytest.fixture
def own_models(machine: Machine, tmp_path: Path, models_dir: Path) -> Path:
    """The models in a folder that the test may spoil."""
    machine.models = tmp_path / "cache/models"
    shutil.copytree(models_dir / "all-minilm-l6-v2", machine.models / "all-minilm-l6-v2")
    (model,) = machine.models.rglob("*.gguf")
    return model


@pytest.mark.parametrize("damage", ["flipped", "truncated", "deleted"])
def test_model_that_is_spoilt_while_it_is_used_changes_no_vector(
    machine: Machine, own_models: Path, tmp_path: Path, models_dir: Path, damage: str
) -> None:
    """A mapped file would be read again: the process dies of it, or makes vectors that mean nothing and keeps them."""
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    with machine.daemon() as daemon:
        daemon.settle()
        {"flipped": flip_all, "truncated": cut, "deleted": Path.unlink}[damage](own_models)
        machine.write("memory/b.md", "A violin in the harbour.\n")
        daemon.wait_for("violin", "memory/b.md")
        daemon.settle()
        found = daemon.call("search", query="music by the sea", explain=True)
        assert found["degraded"] is None
        root = daemon.call("verify")["root"]
    with make_machine(make_folder(tmp_path / "sound"), models_dir) as sound:
        shutil.copytree(machine.root, sound.root, dirs_exist_ok=True)
        with sound.daemon() as daemon:
            assert check_sound(daemon)["root"] == root
            assert daemon.call("search", query="music by the sea", explain=True)["results"] == found["results"]


def flip_all(file: Path) -> None:
    """In place, as a failing disk or a careless copy does: every byte of the second half."""
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(size // 2)
        opened.write(b"\x7b" * (size - size // 2))


def make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder
