"""``memoryd service`` on machines with, without and with an unwilling systemd, each step told and none repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import PROGRAM, Machine, make_machine
from tests.support.fake_systemctl import FakeSystemd

BOTH = "memoryd.socket memoryd.service"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with make_machine(tmp_path, tmp_path / "cache/memoryd/models") as machine:
        machine.env = {"MEMORYD_WORKSPACE": ""}
        machine.config_file.parent.mkdir(parents=True)
        machine.config_file.write_text(f'[[workspace]]\npath = "{machine.root}"\n')
        yield machine


@pytest.fixture
def systemd(machine: Machine, tmp_path: Path) -> FakeSystemd:
    fake = FakeSystemd(tmp_path / "bin")
    machine.env["PATH"] = f"{fake.folder}{os.pathsep}{os.environ['PATH']}"
    return fake


def units(machine: Machine) -> Path:
    return machine.config_file.parent.parent / "systemd/user"


def test_install_writes_enables_and_starts_once(machine: Machine, systemd: FakeSystemd) -> None:
    done = machine.run("service", "install")
    assert done.returncode == 0, done.stderr
    assert systemd.calls() == [
        "daemon-reload",
        "enable memoryd.socket memoryd.service",
        f"reset-failed {BOTH}",
        f"start {BOTH}",
    ]
    service = (units(machine) / "memoryd.service").read_text()
    assert f"\nExecStart={PROGRAM} run\n" in service
    assert f"Environment=XDG_DATA_HOME={machine.folder}/data\n" in service
    assert f"{machine.data}" in service
    assert "\nListenStream=%t/memoryd/memoryd.sock\n" in (units(machine) / "memoryd.socket").read_text()
    for told in ("wrote ", "enabled ", "started ", "loginctl enable-linger", "MEMORYD_PATHS__CACHE"):
        assert told in done.stderr

    again = machine.run("service", "install")
    assert again.returncode == 0
    assert again.stderr.count("unchanged ") == 3
    assert "wrote" not in again.stderr
    assert systemd.calls() == []

    machine.config_file.write_text(f'[paths]\ndata = "{machine.folder}/elsewhere"\n{machine.config_file.read_text()}')
    assert machine.json("service", "status")["units"] == {
        str(units(machine) / "memoryd.socket"): "current",
        str(units(machine) / "memoryd.service"): "outdated",
    }
    changed = machine.run("service", "install")
    assert "unchanged" in changed.stderr
    assert systemd.calls() == [
        "daemon-reload",
        f"enable {BOTH}",
        "reset-failed memoryd.service",
        "restart memoryd.service",
    ]


def test_dry_run_says_what_it_would_do_and_does_nothing(machine: Machine, systemd: FakeSystemd) -> None:
    done = machine.run("service", "install", "--dry-run")
    assert done.returncode == 0
    assert "would have wrote" not in done.stderr
    assert "would write" in done.stderr
    assert "would start memoryd.service" in done.stderr
    plan = json.loads(machine.run("service", "install", "--dry-run", "--json").stdout)
    assert plan["dry_run"]
    assert len(plan["steps"]) == 5
    assert systemd.calls() == []
    assert not units(machine).exists()


def test_uninstall_removes_only_what_install_wrote(machine: Machine, systemd: FakeSystemd) -> None:
    machine.run("service", "install")
    other = units(machine) / "other.service"
    other.write_text("[Service]\nExecStart=/bin/true\n")
    edited = units(machine) / "memoryd.socket"
    edited.write_text(edited.read_text() + "# mine\n")
    systemd.calls()
    done = machine.run("service", "uninstall")
    assert done.returncode == 0
    assert "changed by hand" in done.stderr
    assert systemd.calls() == ["disable --now memoryd.service", "daemon-reload"]
    assert sorted(path.name for path in units(machine).iterdir()) == ["memoryd.socket", "other.service"]
    assert machine.run("service", "uninstall", "--force").returncode == 0
    assert sorted(path.name for path in units(machine).iterdir()) == ["other.service"]


def test_unit_of_the_users_own_is_not_overwritten(machine: Machine, systemd: FakeSystemd) -> None:
    units(machine).mkdir(parents=True)
    mine = units(machine) / "memoryd.service"
    mine.write_text("[Service]\nExecStart=/my/own\n")
    done = machine.run("service", "install")
    assert done.returncode == 1
    assert "was not written by memoryd" in done.stderr
    assert "systemctl --user edit" in done.stderr
    assert "/my/own" in mine.read_text()
    assert not (units(machine) / "memoryd.socket").exists()
    assert systemd.calls() == []
    assert machine.run("service", "install", "--force").returncode == 0
    assert "/my/own" not in mine.read_text()


def test_start_stop_restart_status_and_logs_are_passed_on(machine: Machine, systemd: FakeSystemd) -> None:
    refused = machine.run("service", "start")
    assert (refused.returncode, "service install" in refused.stderr) == (1, True)
    machine.run("service", "install")
    systemd.calls()
    assert machine.run("service", "stop").returncode == 0
    assert machine.run("service", "status").returncode == 3
    assert machine.run("service", "start").returncode == 0
    assert machine.run("service", "restart").returncode == 0
    assert [call for call in systemd.calls() if not call.startswith("reset-failed")] == [
        f"stop {BOTH}",
        f"start {BOTH}",
        "restart memoryd.service",
    ]
    status = machine.json("service", "status")
    assert (status["active"], status["pid"], status["restarts"], status["lingering"]) == (True, 77, 2, False)
    assert "serving 1 workspace" in machine.run("service", "status").stdout
    logs = machine.run("service", "logs", "--lines", "7", "--follow")
    assert logs.stdout == "journal --user-unit=memoryd.service --lines=7 --follow\n"


@pytest.mark.parametrize("action", ["install", "uninstall", "start", "stop", "restart", "status"])
def test_without_a_user_manager_the_foreground_is_named(machine: Machine, systemd: FakeSystemd, action: str) -> None:
    systemd.set(broken=True)
    done = machine.run("service", action)
    assert done.returncode == 1
    assert "No medium found" in done.stderr
    assert "memoryd run" in done.stderr
    assert not units(machine).exists()
    machine.env["PATH"] = str(machine.folder)  # and where there is no systemd at all
    done = machine.run("service", action)
    assert (done.returncode, "there is no systemctl" in done.stderr, "memoryd run" in done.stderr) == (1, True, True)


def test_what_systemd_refuses_is_told_in_its_words(machine: Machine, systemd: FakeSystemd) -> None:
    systemd.set(failing=["start"])
    done = machine.run("service", "install")
    assert done.returncode == 1
    assert "Job failed. See the journal." in done.stderr
    assert "memoryd service logs" in done.stderr
    error = json.loads(machine.run("service", "install", "--json").stdout)["error"]
    assert error["code"] == "service_failed"


def test_service_wants_its_workspaces_in_the_file(machine: Machine, systemd: FakeSystemd) -> None:
    machine.config_file.write_text("")
    done = machine.run("service", "install", cwd=machine.root)
    assert done.returncode == 2
    assert "[[workspace]]" in done.stderr
    assert systemd.calls() == []


def test_daemon_in_the_foreground_is_not_robbed_of_its_socket(
    machine: Machine, systemd: FakeSystemd, models_dir: Path, default_model: Path
) -> None:
    machine.models = models_dir
    with machine.daemon() as daemon:
        done = machine.run("service", "install")
        assert done.returncode == 1
        assert f"kill {daemon.process.pid}" in done.stderr
        assert systemd.calls() == []
        assert not units(machine).exists()
