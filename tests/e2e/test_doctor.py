"""`memoryd doctor` as a person runs it: with and without a daemon, on a sound and on a broken machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import PROGRAM, Machine, make_machine


@pytest.fixture
def notes(machine: Machine) -> Machine:
    machine.write("memory/a.md", "A lighthouse in the fog.\n")
    return machine


def examine(machine: Machine, **env: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the findings by name."""
    done = machine.run("doctor", "--json", **env)
    report = json.loads(done.stdout)
    assert report["ok"] is (done.returncode == 0), done.stderr
    assert report["problems"] == sum(check["state"] == "problem" for check in report["checks"])
    for check in report["checks"]:
        assert check["message"]
        assert bool(check["fix"]) is (check["state"] != "ok")
    return done.returncode, {check["check"]: check for check in report["checks"]}


def test_a_sound_machine_has_no_problems_with_and_without_a_daemon(notes: Machine) -> None:
    code, found = examine(notes)
    assert code == 0, found
    assert found["daemon"]["state"] == "warning"
    assert found["daemon"]["fix"] == "memoryd run"
    with notes.daemon() as daemon:
        daemon.settle()
        code, found = examine(notes)
        assert code == 0, found
        assert str(daemon.process.pid) in found["daemon"]["message"]
        unsound = {name for name, check in found.items() if check["state"] != "ok"}
        assert unsound <= {"other daemons"}  # other tests may run theirs beside this one
        human = notes.run("doctor", COLUMNS="100")
        assert human.returncode == 0
        assert human.stdout.splitlines()[0].startswith(("✓ memoryd doctor: all", "! memoryd doctor: 1 warning"))


def test_every_mistake_in_the_configuration_is_told_and_the_rest_still_looked_at(notes: Machine) -> None:
    notes.config_file.parent.mkdir(parents=True)
    notes.config_file.write_text("[search]\nlimt = 3\nmin_score = 7\n")
    done = notes.run("doctor", "--json")
    checks = json.loads(done.stdout)["checks"]
    problems = [check["message"] for check in checks if check["state"] == "problem"]
    assert done.returncode == 4
    assert any("limt" in message and "did you mean" in message for message in problems)
    assert any("min_score" in message for message in problems)
    assert {"sqlite", "locale", "data folder"} <= {check["check"] for check in checks}
    human = notes.run("doctor").stdout
    assert human.startswith("✗ memoryd doctor: 2 problems")
    assert human.index("limt") < human.index("✓")  # what is wrong comes first


def test_nothing_to_serve_is_a_problem(machine: Machine) -> None:
    code, found = examine(machine, MEMORYD_WORKSPACE="")
    assert code == 4
    assert "[[workspace]]" in found["configuration"]["fix"]


def test_a_socket_that_others_may_use_is_a_problem(notes: Machine) -> None:
    with notes.daemon():
        notes.socket.chmod(0o666)
        code, found = examine(notes)
        assert code == 4
        assert found["socket"]["fix"] == f"chmod 600 {notes.socket}"


def test_a_daemon_that_listens_elsewhere_is_found(notes: Machine, tmp_path: Path) -> None:
    with notes.daemon() as daemon:
        code, found = examine(notes, MEMORYD_PATHS__SOCKET=str(notes.runtime / "other.sock"))
        assert code == 4
        assert f"process {daemon.process.pid} has the data folder" in found["daemon"]["message"]


def test_a_second_daemon_is_told(notes: Machine, tmp_path: Path, models_dir: Path) -> None:
    (tmp_path / "other").mkdir()
    with make_machine(tmp_path / "other", models_dir) as other, notes.daemon(), other.daemon() as second:
        _, found = examine(notes)
        assert str(second.process.pid) in found["other daemons"]["message"].split()


def test_a_locale_that_is_not_utf8_is_a_problem_and_can_still_be_told(notes: Machine) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, found = examine(notes, **ascii_only)
    assert code == 4
    assert "LANG=C.UTF-8" in found["locale"]["fix"]
    assert "Traceback" not in notes.run("doctor", **ascii_only).stderr
    _, found = examine(notes, PYTHONIOENCODING="latin-1")
    assert found["locale"]["state"] == "warning"


def test_few_open_files_are_a_warning(notes: Machine) -> None:
    done = subprocess.run(
        ["bash", "-c", 'ulimit -n 300; exec "$0" doctor --json', PROGRAM],
        env=notes.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    (check,) = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "open files"]
    assert check["state"] == "warning"


def test_degraded_health_is_a_problem_with_its_remedy(notes: Machine) -> None:
    with notes.daemon() as daemon:
        daemon.settle()
        notes.root.rename(notes.folder / "away")
        try:
            code, found = examine(notes)
            assert code == 4
            assert found["health"]["state"] == found["workspace notes"]["state"] == "problem"
        finally:
            (notes.folder / "away").rename(notes.root)


def test_nothing_is_written(notes: Machine) -> None:
    before = sorted(str(path) for path in notes.folder.rglob("*"))
    examine(notes)
    assert sorted(str(path) for path in notes.folder.rglob("*")) == before
