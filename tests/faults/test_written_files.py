"""The files that a person asks memoryd to write, with the process killed or the disk failing while it does."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.daemon import Machine, make_machine
from tests.support.fake_systemctl import FakeSystemd

SET = (
    "import sys, pathlib; from memoryd.store.failpoints import arm; from memoryd.daemon.config_edit import set_values; "
)
BEFORE = "# mine\n[search]\nlimit = 3\n"


def set_limit(file: Path, limit: int, points: str = "") -> subprocess.CompletedProcess[str]:
    program = f"{SET} arm(sys.argv[2]); set_values(pathlib.Path(sys.argv[1]), {{'search.limit': {limit}}})"
    command = [sys.executable, "-c", program, str(file), points]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("action", ["kill", "full"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_configuration_is_the_one_or_the_other_whatever_happens_while_it_is_written(
    tmp_path: Path, moment: str, action: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(BEFORE)
    done = set_limit(file, 5, f"config.replace.{moment}={action}")
    assert done.returncode == (-9 if action == "kill" else 1)
    assert tomllib.loads(file.read_text())["search"]["limit"] == (3 if moment == "before" else 5)
    assert set_limit(file, 7).returncode == 0
    assert file.read_text() == BEFORE.replace("3", "7")
    assert [left.name for left in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_service_whose_installation_was_killed_is_installed_by_the_next(tmp_path: Path, moment: str) -> None:
    with make_machine(tmp_path, tmp_path / "models") as machine:
        fake = FakeSystemd(tmp_path / "bin")
        machine.env = {"PATH": f"{fake.folder}{os.pathsep}{os.environ['PATH']}", "MEMORYD_WORKSPACE": ""}
        write_config(machine)
        assert machine.run("service", "install", MEMORYD_FAILPOINTS=f"unit.replace.{moment}=kill").returncode == -9
        done = machine.run("service", "install")
        assert done.returncode == 0, done.stderr
        units = machine.folder / "config/systemd/user"
        assert sorted(unit.name for unit in units.iterdir() if unit.is_file()) == ["memoryd.service", "memoryd.socket"]
        assert "ExecStart=" in (units / "memoryd.service").read_text()


def write_config(machine: Machine) -> None:
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(f'[[workspace]]\npath = "{machine.root}"\n')
