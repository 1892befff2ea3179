"""The unit files, shipped and written, as systemd itself reads them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.units import SERVICE, SOCKET, Setup, is_ours, is_untouched, render_units

PROGRAM = Path(sys.executable).with_name("memoryd")
SHIPPED = Path(__file__).resolve().parents[3] / "systemd"
MOST_EXPOSURE = 3.0

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(
        program=PROGRAM,
        writable=(tmp_path / "data", tmp_path / "cache"),
        socket=Path("/run/user/1000/memoryd/memoryd.sock"),
        runtime=Path("/run/user/1000"),
    )


def analyze(tmp_path: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """systemd-analyze as a user would run it, with a folder of its own for everything."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_COLORS": "0"}
    return subprocess.run(
        ["systemd-analyze", "--user", "--no-pager", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write(tmp_path: Path, units: dict[str, str]) -> list[Path]:
    files = [tmp_path / name for name in units]
    for file in files:
        file.write_text(units[file.name])
    return files


def lines(units: dict[str, str], key: str) -> list[str]:
    text = "\n".join(units.values())
    return [line.partition("=")[2] for line in text.splitlines() if line.partition("=")[0] == key]


@needs_systemd
def test_shipped_units_are_clean(tmp_path: Path) -> None:
    program = tmp_path / ".local/bin/memoryd"
    program.parent.mkdir(parents=True)
    program.symlink_to(PROGRAM)
    done = analyze(tmp_path, "verify", SHIPPED / SERVICE, SHIPPED / SOCKET)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
@pytest.mark.parametrize("namespaces", [True, False])
def test_written_units_are_clean(tmp_path: Path, setup: Setup, namespaces: bool) -> None:
    files = write(tmp_path, render_units(replace(setup, namespaces=namespaces)))
    done = analyze(tmp_path, "verify", *files)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
def test_a_key_that_systemd_does_not_know_would_be_told(tmp_path: Path, setup: Setup) -> None:
    """So that the tests above can fail."""
    units = render_units(setup)
    units[SERVICE] = units[SERVICE].replace("NoNewPrivileges=", "NoNewPrivilegs=")
    assert "NoNewPrivilegs" in analyze(tmp_path, "verify", *write(tmp_path, units)).stderr


def exposure(tmp_path: Path, *words: str | Path) -> float:
    done = analyze(tmp_path, "security", "--offline=yes", *words)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


@needs_systemd
@pytest.mark.parametrize("shares_tmp", [False, True])
def test_exposure_is_low(tmp_path: Path, setup: Setup, shares_tmp: bool) -> None:
    (unit, _) = write(tmp_path, render_units(replace(setup, needed=(Path("/tmp/notes"),) if shares_tmp else ())))
    assert exposure(tmp_path, unit) <= MOST_EXPOSURE
    assert exposure(tmp_path, SHIPPED / SERVICE) <= MOST_EXPOSURE
    bare = tmp_path / "bare.service"
    bare.write_text("[Service]\nExecStart=/bin/true\n")
    assert exposure(tmp_path, bare) > MOST_EXPOSURE  # so that the test can fail


@needs_systemd
def test_names_with_every_odd_character_survive_systemd(tmp_path: Path, setup: Setup) -> None:
    odd = tmp_path / 'a "b" $HOME %h \\ ü'
    program = tmp_path / "a $HOME %h ü/memoryd"
    program.parent.mkdir()
    program.symlink_to(PROGRAM)
    units = render_units(
        replace(setup, program=program, writable=(odd,), options=("--config", str(odd / "c.toml")), socket=odd / "s")
    )
    done = analyze(tmp_path, "verify", *write(tmp_path, units))
    assert (done.returncode, done.stderr) == (0, "")


def test_written_units_name_this_machine(setup: Setup) -> None:
    units = render_units(
        replace(setup, options=("--config", "/etc/my notes.toml"), environment={"XDG_DATA_HOME": "/srv/data"})
    )
    assert lines(units, "ExecStart") == [f'{PROGRAM} run --config "/etc/my notes.toml"']
    assert lines(units, "ExecReload") == [f'{PROGRAM} reload --config "/etc/my notes.toml"']
    assert lines(units, "Environment") == ["XDG_DATA_HOME=/srv/data"]
    assert lines(units, "ListenStream") == ["%t/memoryd/memoryd.sock"]
    assert lines(render_units(replace(setup, socket=Path("/srv/s"))), "ListenStream") == ["/srv/s"]


def test_tmp_is_private_unless_something_is_there(setup: Setup) -> None:
    apart = replace(setup, program=Path("/opt/memoryd"), writable=(Path("/srv/data"),))
    assert lines(render_units(apart), "PrivateTmp") == ["yes"]
    assert lines(render_units(apart), "ReadWritePaths") == ["/srv/data"]
    shared = render_units(replace(apart, needed=(Path("/tmp/notes"),)))
    assert lines(shared, "PrivateTmp") == ["no"]
    assert lines(shared, "ReadWritePaths") == ["/srv/data /tmp /var/tmp"]


def test_without_namespaces_only_what_needs_them_is_left_out(setup: Setup) -> None:
    full, less = render_units(setup), render_units(replace(setup, namespaces=False))
    for key in ("PrivateUsers", "ProtectSystem", "ProtectHome", "ReadWritePaths", "CapabilityBoundingSet"):
        assert (len(lines(full, key)), len(lines(less, key))) == (1, 0)
    for key in ("NoNewPrivileges", "MemoryDenyWriteExecute", "RestrictAddressFamilies", "WantedBy"):
        assert lines(full, key) == lines(less, key)


def test_a_file_knows_who_wrote_it_and_whether_it_was_changed(setup: Setup) -> None:
    for name, text in render_units(setup).items():
        assert is_ours(text)
        assert is_untouched(text)
        assert is_ours(text + "# mine\n")
        assert not is_untouched(text + "# mine\n")
        assert not is_ours((SHIPPED / name).read_text())
