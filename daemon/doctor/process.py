"""The running daemon, its socket, and any others."""

from __future__ import annotations

import os
import resource
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from memoryd.daemon.client import Client
from memoryd.daemon.config import Config
from memoryd.daemon.descriptors import RESERVED
from memoryd.daemon.doctor.finding import Finding, ok, problem, warning
from memoryd.daemon.paths import Paths
from memoryd.store.errors import MemorydError


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    status: dict[str, Any] | None  # of the daemon, if it answers
    silence: str | None  # why it does not
    version: str  # of this command line
    socket: Path
    socket_mode: int | None  # None: there is none
    holder: int | None  # the process that has the data folder
    others: tuple[int, ...]  # daemons of this user that have other data folders
    open_files_limit: int


def gather_process(paths: Paths) -> ProcessFacts:
    status, silence = None, None
    try:
        with Client(paths.socket, timeout=30.0) as client:
            status = client.call("status")
    except MemorydError as error:
        silence = error.message
    try:
        mode = paths.socket.lstat().st_mode
    except OSError:
        mode = None
    daemons = list(_daemons())
    holder = next((pid for pid in daemons if _has_open(pid, paths.lock_file)), None)
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)  # a daemon raises its own as far as it may
    return ProcessFacts(
        status=status,
        silence=silence,
        version=version("memoryd"),
        socket=paths.socket,
        socket_mode=mode,
        holder=holder,
        others=tuple(pid for pid in daemons if pid != holder and pid != (status or {}).get("pid")),
        open_files_limit=_its_limit(status) or (sys.maxsize if limit == resource.RLIM_INFINITY else limit),
    )


def _its_limit(status: dict[str, Any] | None) -> int | None:
    """A daemon of another version may not tell."""
    process = ((status or {}).get("measures") or {}).get("process") or {}
    limit = process.get("open_files_limit")
    return limit if isinstance(limit, int) else None


def check_daemon(facts: ProcessFacts) -> Finding:
    if facts.status:
        return ok("daemon", f"version {facts.status['version']} answers, pid {facts.status['pid']}")
    if facts.holder:
        return problem(
            "daemon",
            f"process {facts.holder} has the data folder but does not answer on {facts.socket}: {facts.silence}",
            f"Use the XDG_RUNTIME_DIR and the configuration it was started with, or stop it: kill {facts.holder}",
        )
    return warning("daemon", facts.silence or "it does not run", "memoryd run")


def check_version(facts: ProcessFacts) -> Finding:
    running = facts.status["version"] if facts.status else None
    if running not in (None, facts.version):
        return problem("version", f"the daemon is {running}, this command line {facts.version}", "Restart the daemon")
    return ok("version", f"memoryd {facts.version}")


def check_health(facts: ProcessFacts) -> list[Finding]:
    """What the daemon says of itself."""
    if not facts.status:
        return []
    reasons = facts.status["health"]["reasons"]
    found = [problem("health", reason["message"], reason["hint"] or "See memoryd status") for reason in reasons]
    return found or [ok("health", "the daemon has nothing to complain of")]


def check_socket(facts: ProcessFacts) -> Finding:
    mode, path = facts.socket_mode, facts.socket
    if mode is None:
        if facts.status or facts.holder:
            return problem("socket", f"{path} is gone while the daemon runs", "Restart the daemon")
        return ok("socket", f"{path} is made when the daemon starts")
    if not stat.S_ISSOCK(mode):
        return problem("socket", f"{path} is in the way: not a socket", "Move it away, or set paths.socket")
    if mode & 0o077:
        return problem("socket", f"{path} is open to other users (mode {stat.S_IMODE(mode):o})", f"chmod 600 {path}")
    if facts.status is None:
        return warning("socket", f"nobody answers on {path}; the next daemon replaces it", "memoryd run")
    return ok("socket", f"{path} is yours alone")


def check_others(facts: ProcessFacts) -> Finding:
    if facts.others:
        pids = " ".join(map(str, facts.others))
        return warning(
            "other daemons",
            f"{len(facts.others)} more with data folders of their own: {pids}",
            f"If they are not meant to run: kill {pids}",
        )
    return ok("other daemons", "none")


def check_open_files(facts: ProcessFacts, config: Config) -> Finding:
    need = config.server.max_connections + RESERVED
    if facts.open_files_limit < need:
        return warning(
            "open files",
            f"at most {facts.open_files_limit:,}, and server.max_connections wants {need:,}",
            f"ulimit -n {need} before memoryd run, LimitNOFILE={need} in the unit, or fewer server.max_connections",
        )
    return ok("open files", f"up to {facts.open_files_limit:,}, {need:,} are needed")


def _daemons() -> Iterator[int]:
    """This user's processes that run ``memoryd run``."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.stat().st_uid == os.geteuid() and is_daemon((entry / "cmdline").read_bytes()):
                    yield int(entry.name)


def is_daemon(command_line: bytes) -> bool:
    """Of a command line as /proc has it: ``[python] …/memoryd run``, or ``python -m memoryd.daemon.cli run``."""
    words = [os.fsdecode(word) for word in command_line.split(b"\0")[:5]]
    return any(
        following == "run" and (Path(word).name == "memoryd" or word == "memoryd.daemon.cli")
        for word, following in pairwise(words)
    )


def _has_open(pid: int, file: Path) -> bool:
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if descriptor.samefile(file):
                    return True
    return False
