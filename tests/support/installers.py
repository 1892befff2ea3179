"""memoryd installed as people install it: into a venv, by pipx, by ``uv tool``. Each is the real program.

What memoryd depends on is not installed again, for llama.cpp takes minutes to build: the wheel is built without its
dependencies, and a path file in each environment leads to those of the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.support.programs import leave_out

ROOT = Path(__file__).resolve().parents[2]
_PACKAGED = ("daemon", "jobs", "store", "systemd", "docs/memoryd.1", "config.example.toml", "README.md", "LICENSE")
_BASE = str(Path(sys.executable).resolve())  # not of the tests' own venv


@dataclass(frozen=True)
class Installers:
    """pipx and uv, and the wheel that they are to install."""

    tools: Path  # where they are, beside the programs of the tests
    wheel: Path

    @property
    def uv(self) -> Path:
        return self.tools / "bin/uv"

    def install(self, how: str, home: Path) -> Path:
        """The program as the user finds it afterwards."""
        program = home / ".local/bin/memoryd"
        if how == "venv":
            venv = home / "venvs/notes"
            self.run(home, _BASE, "-m", "venv", "--without-pip", venv)
            pip = (sys.executable, "-m", "pip", "--python", venv / "bin/python")
            self.run(home, *pip, "install", "--no-deps", "--no-index", self.wheel)
            program = venv / "bin/memoryd"
        elif how == "pipx":
            arguments = "--pip-args=--no-deps --no-index"
            self.run(home, sys.executable, "-m", "pipx", "install", "--python", _BASE, arguments, self.wheel)
        else:
            options = ("--offline", "--no-index", "--python", _BASE)
            self.run(home, self.uv, "tool", "install", *options, self.wheel)
        (packages,) = program.resolve().parents[1].glob("lib/python*/site-packages")
        (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        return program

    def run(self, home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """A command in a clean shell of this user, whose package index is the one that pip is set up for."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "LANG", "SSL_"))}
        done = subprocess.run(
            words,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(home),
                "PYTHONPATH": str(self.tools),
                "PIPX_DISABLE_SHARED_LIBS_AUTO_UPGRADE": "1",
                **kept,
            },
            cwd=home,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done


def fetch_installers(folder: Path) -> Installers:
    """Both from the package index that pip is set up for, and the wheel made by the backend that pyproject names."""
    tools = folder / "tools"
    words = ("-m", "pip", "install", "-q", "--target", tools, "pipx", "uv", "hatchling")
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line]
        leave_out("pipx", f"pipx and uv cannot be fetched: {' '.join(said)[:200]}")
    source = folder / "source"
    for name in _PACKAGED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, source / name)
    project = (ROOT / "pyproject.toml").read_text()
    alone, found = re.subn(r"^dependencies = \[.*?^\]", "dependencies = []", project, flags=re.DOTALL | re.MULTILINE)
    assert found == 1
    (source / "pyproject.toml").write_text(alone)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "wheels"]
    subprocess.run(
        build, cwd=source, env={**os.environ, "PYTHONPATH": str(tools)}, check=True, capture_output=True, timeout=100
    )
    (wheel,) = (folder / "wheels").glob("memoryd-*.whl")
    return Installers(tools, wheel)
