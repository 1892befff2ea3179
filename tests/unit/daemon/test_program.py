"""Which program a service starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.daemon.program import find_program
from memoryd.store.errors import ServiceFailed


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def find(called: str, scripts: Path, home: Path, **environ: str) -> Path:
    return find_program(called, scripts, {"HOME": str(home), "PATH": "/nonexistent", **environ})


def test_venv_starts_its_own_script(home: Path) -> None:
    program = script(home / "project/.venv/bin/memoryd")
    assert find(str(program), program.parent, home) == program


@pytest.mark.parametrize("kept", [".local/share/pipx/venvs/memoryd", ".local/share/uv/tools/memoryd"])
def test_link_that_pipx_or_uv_keeps_up_to_date_stays_a_link(home: Path, kept: str) -> None:
    program = script(home / kept / "bin/memoryd")
    link = home / ".local/bin/memoryd"
    link.parent.mkdir(parents=True)
    link.symlink_to(program)
    assert find(str(link), program.parent, home) == link
    assert find("memoryd", program.parent, home, PATH=str(link.parent)) == link


def test_module_run_by_python_is_found_by_its_script(home: Path) -> None:
    program = script(home / ".venv/bin/memoryd")
    assert find(str(home / "site-packages/memoryd/daemon/cli.py"), program.parent, home) == program
    assert find("", program.parent, home) == program


def test_without_any_script_the_remedy_is_told(home: Path) -> None:
    with pytest.raises(ServiceFailed, match="no program") as caught:
        find("cli.py", home / "bin", home)
    assert "pipx install" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("place", "environ"),
    [
        (".cache/uv/archive-v0/x9/bin/memoryd", {}),
        ("elsewhere/uv/archive-v0/x9/bin/memoryd", {"UV_CACHE_DIR": "{home}/elsewhere/uv"}),
        ("fast/uv/environments-v2/x9/bin/memoryd", {"XDG_CACHE_HOME": "{home}/fast"}),
        (".local/share/pipx/.cache/a1/bin/memoryd", {}),
    ],
)
def test_environment_made_for_once_is_refused(home: Path, place: str, environ: dict[str, str]) -> None:
    program = script(home / place)
    with pytest.raises(ServiceFailed, match="cleared now and then") as caught:
        find(str(program), program.parent, home, **{name: each.format(home=home) for name, each in environ.items()})
    assert "uv tool install" in (caught.value.hint or "")


def test_path_that_systemd_does_not_take_is_refused(home: Path) -> None:
    program = script(home / "it's/bin/memoryd")
    with pytest.raises(ServiceFailed, match="starts no program"):
        find(str(program), program.parent, home)
