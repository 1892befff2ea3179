"""The folders in which session transcripts lie, as workspaces of a kind of their own, from the globs in [sessions]."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import count
from pathlib import Path

from memoryd.daemon.config import Sessions
from memoryd.daemon.config_schema import clean_name
from memoryd.jobs.sessions.rules import SegmentRules
from memoryd.jobs.workspace import Workspace
from memoryd.store.globs import static_prefix

_PREFIX = "sessions"


def session_workspaces(sessions: Sessions, taken: Container[str]) -> dict[str, Workspace]:
    """One for each folder that a glob begins with, and that is not inside another's; none unless they are enabled."""
    if not sessions.enabled:
        return {}
    rules = SegmentRules(max_turn_chars=sessions.max_turn_chars)
    found: dict[str, Workspace] = {}
    for root, include in roots_of(sessions.paths).items():
        name = _name(root, {*found}, taken)
        found[name] = Workspace(name, root, include, transcripts=rules)
    return found


def roots_of(globs: Sequence[str]) -> dict[Path, tuple[str, ...]]:
    """Folder, without symlinks -> the globs inside it.

    A harness' own folder (``~/.claude``) is better to begin with than the one in it: Claude Code's projects have names
    such as ``-home-ana-boat``, which the command line would take for an option.
    """
    prefixes = {glob: _begin(glob) for glob in globs}
    folders = {prefix: _real(Path(prefix)) for prefix in prefixes.values()}
    outermost = [each for each in folders.values() if not any(other in each.parents for other in folders.values())]
    found: dict[Path, list[str]] = {root: [] for root in outermost}
    for glob, prefix in prefixes.items():
        folder = folders[prefix]
        root = next(each for each in outermost if each == folder or each in folder.parents)
        inside = folder.relative_to(root).as_posix()
        rest = glob[len(prefix) :].lstrip("/")
        found[root].append(rest if inside == "." else f"{inside}/{rest}")
    return {root: tuple(dict.fromkeys(include)) for root, include in found.items()}


def _begin(glob: str) -> str:
    prefix = static_prefix(glob)
    above = prefix.rpartition("/")[0]
    return above if above.rpartition("/")[2].startswith(".") else prefix


def _name(root: Path, ours: Container[str], taken: Container[str]) -> str:
    """By the folder: that of ``~/.claude/projects`` is ``sessions-claude``."""
    name = clean_name(f"{_PREFIX}-{root.name.lstrip('.')}")[:60].rstrip("-")
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if each not in ours and each not in taken)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path
