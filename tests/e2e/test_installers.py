"""``memoryd service install`` after each way in which memoryd is installed, with the real installers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.fake_systemctl import FakeSystemd
from tests.support.installers import Installers, fetch_installers


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Installers:
    return fetch_installers(tmp_path_factory.mktemp("installers"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "notes/memory").mkdir(parents=True)
    (home / ".config/memoryd").mkdir(parents=True)
    (home / ".config/memoryd/config.toml").write_text('[[workspace]]\npath = "~/notes"\n')
    return home


def call(home: Path, *words: str | Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """As typed in this user's shell, where systemd is a stand-in."""
    fake = home.parent / "bin"
    if not fake.exists():
        FakeSystemd(fake)
    environment = {"PATH": f"{fake}:{path}:/usr/bin:/bin", "HOME": str(home), "XDG_RUNTIME_DIR": str(home.parent)}
    return subprocess.run(
        ["/usr/bin/env", *words], env=environment, cwd=home, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("how", ["venv", "pipx", "uv"])
def test_units_start_the_program_that_was_installed(home: Path, installers: Installers, how: str) -> None:
    program = installers.install(how, home)
    assert (how == "venv") is not program.is_symlink()  # what pipx and uv keep up to date is the link
    done = call(home, "memoryd", "service", "install", path=str(program.parent))
    assert done.returncode == 0, done.stderr

    units = home / ".config/systemd/user"
    (started,) = re.findall(r"^ExecStart=(\S+) run$", (units / "memoryd.service").read_text(), re.MULTILINE)
    assert started == str(program)
    for reached in (program, Path(started)):
        assert call(home, reached, "--version").stdout == f"memoryd {version('memoryd')}\n"
    where = subprocess.run(
        [program.resolve().with_name("python"), "-c", "import memoryd.daemon; print(memoryd.daemon.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(program.resolve().parents[1])  # not the tests' own

    if shutil.which("systemd-analyze"):
        verified = subprocess.run(
            ["systemd-analyze", "--user", "--no-pager", "verify", *sorted(units.glob("memoryd.*"))],
            env={**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home.parent), "SYSTEMD_COLORS": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")

    again = call(home, program, "service", "install")  # by its whole path: the same
    assert again.stderr.count("unchanged ") == 3, again.stderr


def test_what_uv_runs_from_its_cache_is_refused(home: Path, installers: Installers) -> None:
    once = ("tool", "run", "--offline", "--no-index", "--from", installers.wheel, "memoryd")
    done = call(home, installers.uv, *once, "service", "install")
    assert done.returncode == 1
    assert "cleared now and then" in done.stderr
    assert "uv tool install" in done.stderr
    assert not (home / ".config/systemd/user").exists()
