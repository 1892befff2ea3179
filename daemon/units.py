"""The unit files as they are written for one user: the shipped ones with the paths of this machine. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

SERVICE, SOCKET = "memoryd.service", "memoryd.socket"
_HEADER = re.compile(r"# Written by 'memoryd service install' \(digest (\w{16})\)\.\n")
_NAMESPACES = "# Enforced by namespaces"  # begins the part that needs them, up to an empty line
_SHARED = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - named, not written to


@dataclass(frozen=True, slots=True)
class Setup:
    """What the unit files depend on."""

    program: Path
    writable: tuple[Path, ...]  # the folders that memoryd writes to
    socket: Path
    runtime: Path | None  # $XDG_RUNTIME_DIR, which systemd knows as %t
    needed: tuple[Path, ...] = ()  # what it reads besides: workspaces, a model of the user's own
    options: tuple[str, ...] = ()  # for every call of the program
    environment: Mapping[str, str] = field(default_factory=dict)
    namespaces: bool = True  # whether this user may have namespaces of their own

    @property
    def shares_tmp(self) -> bool:
        """Whether something is in a folder that a service otherwise has to itself."""
        return any(
            path.is_relative_to(folder)
            for path in (self.program, self.program.resolve(), *self.writable, *self.needed)
            for folder in _SHARED
        )


def render_units(setup: Setup) -> dict[str, str]:
    """The text of each unit file, by name."""
    shipped = files("memoryd.systemd")
    service = "\n".join(_service_lines(setup, (shipped / SERVICE).read_text(encoding="utf-8").splitlines()))
    socket = "\n".join(_socket_lines(setup, (shipped / SOCKET).read_text(encoding="utf-8").splitlines()))
    return {SERVICE: _sign(f"{service}\n"), SOCKET: _sign(f"{socket}\n")}


def is_ours(text: str) -> bool:
    """Whether ``memoryd service install`` wrote this file."""
    return _HEADER.match(text) is not None


def is_untouched(text: str) -> bool:
    """Whether it is still as it was written."""
    header = _HEADER.match(text)
    return header is not None and header[1] == _digest(text[header.end() :])


def _service_lines(setup: Setup, lines: list[str]) -> Iterator[str]:
    program = _quote(str(setup.program))
    options = "".join(f" {_argument(option)}" for option in setup.options)
    writable = " ".join(_quote(str(folder)) for folder in setup.writable)
    shared = "".join(f" {folder}" for folder in _SHARED) if setup.shares_tmp else ""
    written = {
        "ExecStartPre": f"-+/bin/mkdir -p -m 0700 {' '.join(_argument(str(folder)) for folder in setup.writable)}",
        "ExecStart": f"{program} run{options}",
        "ExecReload": f"{program} reload{options}",
        "ReadWritePaths": writable + shared,
        "PrivateTmp": "no" if setup.shares_tmp else "yes",
    }
    inside = False
    for line in lines:
        key = line.partition("=")[0]
        inside = line.startswith(_NAMESPACES) or (inside and line != "")
        if inside and not setup.namespaces:
            if line.startswith(_NAMESPACES):
                yield "# Without what is enforced by namespaces: this machine does not let this user have any."
        else:
            yield f"{key}={written[key]}" if key in written else line
        if key == "ExecReload":
            for name, value in sorted(setup.environment.items()):
                yield f"Environment={_escape(f'{name}={value}')}"


def _socket_lines(setup: Setup, lines: list[str]) -> Iterator[str]:
    path = _percent(str(setup.socket))
    if setup.runtime and setup.socket.is_relative_to(setup.runtime):
        path = f"%t/{_percent(str(setup.socket.relative_to(setup.runtime)))}"
    for line in lines:
        yield f"ListenStream={path}" if line.startswith("ListenStream=") else line


def _sign(text: str) -> str:
    return f"# Written by 'memoryd service install' (digest {_digest(text)}).\n{text}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def _quote(text: str) -> str:
    """A path in a list, or the program itself: systemd takes variables and backslashes there as they are."""
    mark = "'" if '"' in text else '"'
    return _percent(text) if _is_plain(text) else f"{mark}{_percent(text)}{mark}"


def _escape(text: str) -> str:
    """A word in which backslashes count."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return _percent(text) if _is_plain(text) else f'"{_percent(escaped)}"'


def _argument(text: str) -> str:
    """A word of a command line, where a dollar sign would begin a variable."""
    return _escape(text).replace("$", "$$")


def _is_plain(text: str) -> bool:
    return re.fullmatch(r"[\w%/.:=@+,-]+", text, re.ASCII) is not None
