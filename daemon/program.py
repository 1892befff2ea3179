"""Which program a service is to start: this one, under a name that is still there tomorrow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from memoryd.daemon.paths import xdg_folder
from memoryd.store.errors import ServiceFailed

NAME = "memoryd"
_LASTING = "Install it to stay ('uv tool install', 'pipx install' or a venv of its own), then run its 'service install'"


def find_program(called: str, scripts: Path, environ: Mapping[str, str]) -> Path:
    """The path for ExecStart: as it was called (a link that pipx and uv keep up to date stays one), else the script
    beside the interpreter. Raises ``ServiceFailed`` where there is none, or only one that will be cleared away."""
    typed = shutil.which(called, path=environ.get("PATH", os.defpath)) if called else None
    choices = [Path(typed).absolute()] if typed and Path(typed).name == NAME else []
    program = next((path for path in (*choices, scripts / NAME) if os.access(path, os.X_OK)), None)
    if program is None:
        raise ServiceFailed(f"there is no program {NAME} in {scripts} that a service could start", hint=_LASTING)
    if odd := sorted(set(str(program)) & set("\"'\\")):
        raise ServiceFailed(f"systemd starts no program with {' '.join(odd)} in its path: {program}", hint=_LASTING)
    if place := _short_lived(program.resolve(), environ):
        raise ServiceFailed(f"{program} is in {place}, which is cleared now and then", hint=_LASTING)
    return program


def _short_lived(program: Path, environ: Mapping[str, str]) -> Path | None:
    """The cache that a program is run from: 'uvx', 'uv run' and 'pipx run' make an environment there for once."""
    caches = [xdg_folder("XDG_CACHE_HOME", environ)]
    caches += [Path(environ["UV_CACHE_DIR"])] if environ.get("UV_CACHE_DIR") else []
    caches += [folder for folder in program.parents if folder.name == ".cache"]  # pipx has one inside its home
    return next((cache for cache in caches if program.is_relative_to(cache.resolve())), None)
