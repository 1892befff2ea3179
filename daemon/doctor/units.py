"""The systemd units that are installed, compared with those that this version brings."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from memoryd.daemon.doctor.finding import Finding, ok, problem, warning
from memoryd.daemon.paths import xdg_folder

UNITS = ("memoryd.service", "memoryd.socket")
_REINSTALL = "memoryd service install"
# What the installation writes to fit this machine; everything else is as it was packaged.
_FITTED = ("ExecStart", "ExecStartPre", "ExecReload", "Environment", "ListenStream", "PrivateTmp", "ReadWritePaths")
# Where a user may have no namespaces the installation leaves out what begins so, up to an empty line.
_NAMESPACES = re.compile(r"^# Enforced by namespaces.*?\n\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UnitFacts:
    name: str
    path: Path
    installed: str | None  # its text
    packaged: str | None
    drop_ins: tuple[str, ...]  # names of files that change it
    program: str | None  # what ExecStart runs, with %h replaced
    program_runs: bool


def gather_units(environ: Mapping[str, str]) -> list[UnitFacts]:
    folder = xdg_folder("XDG_CONFIG_HOME", environ) / "systemd" / "user"
    return [_gather(folder / name, environ) for name in UNITS]


def _gather(path: Path, environ: Mapping[str, str]) -> UnitFacts:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = None
    shipped = files("memoryd.systemd").joinpath(path.name)
    program = program_of(text or "", environ.get("HOME", ""))
    return UnitFacts(
        name=path.name,
        path=path,
        installed=text,
        packaged=shipped.read_text(encoding="utf-8") if shipped.is_file() else None,
        drop_ins=tuple(sorted(file.name for file in path.with_name(f"{path.name}.d").glob("*.conf"))),
        program=program,
        program_runs=program is not None and os.access(program, os.X_OK),
    )


def check_unit(facts: UnitFacts) -> Finding:
    if facts.installed is None:
        return ok(facts.name, "not installed; memoryd service install does it")
    if facts.program is not None and not facts.program_runs:
        return problem(facts.name, f"ExecStart names {facts.program}, which cannot be run", _REINSTALL)
    differing = differing_keys(facts.installed, facts.packaged or "")
    if facts.packaged is not None and differing:
        return warning(
            facts.name,
            f"{facts.path} is not as this version brings it: {', '.join(differing)}",
            f"{_REINSTALL} (--force if you changed it; keep your changes with systemctl --user edit {facts.name})",
        )
    changed = f", changed by {', '.join(facts.drop_ins)}" if facts.drop_ins else ""
    return ok(facts.name, f"{facts.path} is as this version brings it{changed}")


def differing_keys(installed: str, packaged: str) -> list[str]:
    """The keys that have other values, or stand in one of the two alone."""
    if not _NAMESPACES.search(installed):
        packaged = _NAMESPACES.sub("\n", packaged)
    ours, theirs = _entries(packaged), _entries(installed)
    return sorted({key for key, _ in ours.symmetric_difference(theirs)})


def _entries(unit: str) -> set[tuple[str, str]]:
    lines = unit.replace("\\\n", " ").splitlines()
    pairs = [line.strip().partition("=") for line in lines if "=" in line and not line.lstrip().startswith(("#", ";"))]
    return {(key.strip(), " ".join(value.split())) for key, _, value in pairs if key.strip() not in _FITTED}


def program_of(unit: str, home: str) -> str | None:
    """The program that a service runs; None for a unit without one."""
    for line in unit.splitlines():
        key, _, command = line.strip().partition("=")
        if key.strip() == "ExecStart" and command.strip():
            try:
                words = shlex.split(command.strip().lstrip("-@:+!"))
            except ValueError:
                words = command.split()
            return words[0].replace("%h", home).replace("%%", "%") if words else None
    return None
