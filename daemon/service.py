"""memoryd as a user service: written, enabled and started; and taken away again, with nothing else touched."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.daemon.paths import Paths, xdg_folder
from memoryd.daemon.program import find_program
from memoryd.daemon.service_manager import ServiceManager
from memoryd.daemon.session_workspaces import session_workspaces
from memoryd.daemon.units import SERVICE, SOCKET, Setup, is_ours, is_untouched, render_units
from memoryd.store.errors import ConfigInvalid, ServiceFailed
from memoryd.store.failpoints import failpoint

UNITS = (SOCKET, SERVICE)  # in the order in which they are started
_XDG = {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}

Steps = Iterator[str]  # what was done, told as it is done


def units_folder(environ: Mapping[str, str]) -> Path:
    return xdg_folder("XDG_CONFIG_HOME", environ) / "systemd/user"


def plan_setup(
    config: Config, paths: Paths, named: Path | None, environ: Mapping[str, str], *, namespaces: bool
) -> Setup:
    """What the unit files have to say. ``named`` is the configuration file of the command line.

    Raises ``ConfigInvalid`` where a service would find nothing to serve: it knows no current folder and no shell.
    """
    if config.origin.get("workspace") != "file":
        raise ConfigInvalid(
            (f"{paths.config_file}: no workspace is configured, and a service serves what the file says",),
            hint=f'Add to {paths.config_file}:  [[workspace]]  path = "~/notes"',
        )
    folder = paths.config_file.parent
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    return Setup(
        program=find_program(sys.argv[0], Path(sysconfig.get_path("scripts")), environ),
        # 'config set --persist' writes into the configuration's folder, if that is one of ours.
        writable=(
            paths.data_dir,
            paths.cache_dir,
            *_own_vectors(paths),
            *([folder] if folder.name == "memoryd" else []),
        ),
        needed=(
            *(workspace.path for workspace in config.workspaces),
            *(workspace.root for workspace in session_workspaces(config.sessions, ()).values()),
            *_own_models(config),
        ),
        socket=paths.socket,
        runtime=Path(runtime) if runtime.startswith("/") else None,
        options=("--config", str(named.absolute())) if named else (),
        environment={
            name: environ[name]
            for name in _XDG
            if environ.get(name, "").startswith("/") and Path(environ[name]) != xdg_folder(name, _home_alone(environ))
        },
        namespaces=namespaces,
    )


def describe_setup(setup: Setup, config: Config, environ: Mapping[str, str]) -> Steps:
    """What a person should know about the sandbox and the environment of the service."""
    if not setup.namespaces:
        yield "this machine does not let you have user namespaces; the service runs without file system sandbox"
    elif setup.shares_tmp:
        yield "the program, a workspace or a folder is in /tmp, so the service does not get a /tmp of its own"
    unseen = sorted(name for name in environ if name.startswith("MEMORYD_"))
    if unseen:
        yield f"the service does not see this shell's {', '.join(unseen)}; write it into {config.file}"


def install(setup: Setup, folder: Path, manager: ServiceManager, *, force: bool, start: bool) -> Steps:
    """Write the units, enable them, start or restart the service. Doing it twice changes nothing the second time."""
    units = render_units(setup)
    found = {name: _read(folder / name) for name in units}
    for name, text in found.items():
        _check_replaceable(folder / name, text, force=force)
    changed = [name for name in units if found[name] != units[name]]
    for name, text in units.items():
        if name in changed and not manager.dry:
            _write(folder / name, text)
        yield f"{'wrote' if name in changed else 'unchanged'} {folder / name}"
    if changed:
        manager.run("daemon-reload")
        yield "reloaded systemd's units"
    if changed or manager.show().get("UnitFileState") != "enabled":
        manager.run("enable", *UNITS)
        yield f"enabled {' and '.join(UNITS)}"
    if start and manager.is_active():
        if changed:
            manager.start("restart", *(UNITS if SOCKET in changed else (SERVICE,)))  # a socket that stays misses nobody
            yield f"restarted {SERVICE}"
        else:
            yield f"unchanged {SERVICE} is running"
    elif start:
        manager.start("start", *UNITS)
        yield f"started {SERVICE}"


def uninstall(folder: Path, manager: ServiceManager, *, force: bool) -> Steps:
    """Stop, disable and remove what ``install`` wrote. A file of the user's own stays, and is named."""
    found = {name: text for name in UNITS if (text := _read(folder / name)) is not None}
    ours = [name for name, text in found.items() if is_untouched(text) or (force and is_ours(text))]
    if ours:
        manager.run("disable", "--now", *ours)
        yield f"stopped and disabled {' and '.join(ours)}"
    for name in found:
        if name not in ours:
            why = "changed by hand, --force removes it" if is_ours(found[name]) else "not ours"
            yield f"left {folder / name}: {why}"
            continue
        if not manager.dry:
            (folder / name).unlink()
        yield f"removed {folder / name}"
    if ours:
        manager.run("daemon-reload")
        yield "reloaded systemd's units"
    if not found:
        yield f"unchanged there is no memoryd unit in {folder}"


def describe_units(folder: Path, setup: Setup | None) -> dict[str, str]:
    """Each unit file: absent, current, outdated (``install`` would write another), changed by hand, or not ours."""
    units = render_units(setup) if setup else {}
    return {name: _describe(_read(folder / name), units.get(name)) for name in UNITS}


def _describe(text: str | None, wanted: str | None) -> str:
    if text is None:
        return "absent"
    if not is_ours(text):
        return "not ours"
    if not is_untouched(text):
        return "changed by hand"
    return "current" if wanted is None or text == wanted else "outdated"


def _check_replaceable(file: Path, text: str | None, *, force: bool) -> None:
    if text is None or is_untouched(text) or force:
        return
    what = "was changed by hand" if is_ours(text) else "was not written by memoryd"
    raise ServiceFailed(
        f"{file} {what}",
        hint="Keep your changes in a drop-in ('systemctl --user edit memoryd') and repeat with --force, or remove it",
    )


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ServiceFailed(f"{file} cannot be read: {error}") from error


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.new")
        beside.write_text(text, encoding="utf-8")
        failpoint("unit.replace.before")
        beside.replace(file)
        failpoint("unit.replace.after")
    except OSError as error:
        raise ServiceFailed(f"{file} cannot be written: {error.strerror}") from error


def _own_vectors(paths: Paths) -> list[Path]:
    """The folder of the vectors, if it is one that the configuration names."""
    return [] if paths.vectors_dir.is_relative_to(paths.data_dir) else [paths.vectors_dir]


def _own_models(config: Config) -> list[Path]:
    return [Path(model) for model in (config.embedder.model, config.llm.model) if Path(model).is_absolute()]


def _home_alone(environ: Mapping[str, str]) -> dict[str, str]:
    return {"HOME": environ["HOME"]} if "HOME" in environ else {}
