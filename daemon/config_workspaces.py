"""Which folders are served: the command line's, the environment's, the file's, or the current one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, count
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.daemon.config import Workspace
from memoryd.daemon.config_draft import Draft, Place
from memoryd.daemon.config_problem import describe
from memoryd.daemon.config_schema import WORKSPACE_SETTINGS, build, clean_name
from memoryd.daemon.paths import expand_path
from memoryd.store.model import FACTS

NOTHING_TO_SERVE = (
    "no workspace is configured, and the current folder holds no memory (MEMORY.md, memory/ or skills/): "
    "add a [[workspace]] block to the configuration, or name a folder with --workspace or MEMORYD_WORKSPACE"
)


class Candidate(NamedTuple):
    """A workspace as written, and where it is written."""

    place: str
    workspace: Workspace


class Choice(NamedTuple):
    """The workspaces to serve, who chose them, and what to tell a person about it."""

    workspaces: tuple[Workspace, ...]
    origin: str
    notes: tuple[str, ...] = ()


def read_blocks(
    blocks: Any, place: Place, folder: Path, environ: Mapping[str, str], problems: list[str]
) -> list[Candidate]:
    """The file's ``[[workspace]]`` blocks; what is wrong with them goes to ``problems``."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        problems.append(f"{place('workspace')}: found {describe(blocks)}; allowed: [[workspace]] blocks")
        return []
    found = []
    for number, block in enumerate(blocks, 1):
        label = f"workspace[{number}]"
        draft = Draft(WORKSPACE_SETTINGS, environ)
        draft.take_table(block, partial(_place_inside, place, label), folder)
        if block.get("path", "") == "":
            draft.problems.append(f"{place(f'{label}.path')}: missing; allowed: a path")
        if block.get("include") == []:
            draft.problems.append(f"{place(f'{label}.include')}: found no glob; allowed: one or more")
        if draft.problems:
            problems += draft.problems
        else:
            workspace = build(Workspace, draft.values | {"path": Path(draft.values["path"])})
            found.append(Candidate(place(label), workspace))
    return found


def _place_inside(place: Place, label: str, key: str) -> str:
    return place(f"{label}.{key}")


def choose_workspaces(
    configured: Sequence[Candidate],
    environ: Mapping[str, str],
    cwd: Path,
    command_line: Sequence[Path],
    problems: list[str],
) -> Choice:
    """The workspaces that count. A folder that the file knows too keeps what its block says."""
    notes: tuple[str, ...] = ()
    if command_line:
        origin = "command line"
        chosen = [Candidate("command line: --workspace", Workspace(cwd / path)) for path in command_line]
    elif environ.get("MEMORYD_WORKSPACE", "").strip(":"):
        origin, chosen = "environment", list(_from_environment(environ, cwd, problems))
    elif configured:
        origin, chosen = "file", list(configured)
    elif holds_memory(cwd):
        origin, chosen = "current folder", [Candidate("current folder", Workspace(cwd))]
        notes = (f"no workspace is configured: serving the current folder, {cwd}",)
    else:
        return Choice((), "default", (NOTHING_TO_SERVE,))
    known = {_real(block.workspace.path): block.workspace for block in configured}
    chosen = [Candidate(place, known.get(_real(given.path), given)) for place, given in chosen]
    settled = _name_all(chosen, problems)
    problems += _overlaps(settled)
    return Choice(tuple(workspace for _, workspace in settled), origin, notes)


def holds_memory(folder: Path) -> bool:
    """Whether a folder looks like an agent's memory."""
    try:
        return (folder / "MEMORY.md").is_file() or any(
            any((folder / name).rglob("*.md")) for name in ("memory", "skills")
        )
    except OSError:  # cannot look, so nothing to serve
        return False


def _from_environment(environ: Mapping[str, str], cwd: Path, problems: list[str]) -> Iterator[Candidate]:
    place = "environment: MEMORYD_WORKSPACE"
    for text in filter(None, environ["MEMORYD_WORKSPACE"].split(":")):
        try:
            yield Candidate(place, Workspace(expand_path(text, cwd, environ)))
        except ValueError as unfit:
            problems.append(f"{place}: found {describe(text)}; {unfit}")


def _name_all(candidates: Sequence[Candidate], problems: list[str]) -> list[Candidate]:
    """The same with real paths and with a name for each; a given name goes before a folder's."""
    given = [workspace.name for _, workspace in candidates if workspace.name]
    taken, named = {FACTS, *given}, []
    for place, workspace in candidates:
        if workspace.name == FACTS:
            problems.append(f"{place}: found the name {describe(FACTS)}, which memoryd keeps; allowed: any other")
        if given.count(workspace.name) > 1:
            problems.append(f"{place}: found the name {describe(workspace.name)} twice; allowed: unique names")
        name = workspace.name or _unused_name(workspace.path, taken)
        taken.add(name)
        named.append(Candidate(place, replace(workspace, path=_real(workspace.path), name=name)))
    return named


def _overlaps(candidates: Sequence[Candidate]) -> Iterator[str]:
    """A file in two workspaces would be found twice."""
    for (_, one), (place, other) in combinations(candidates, 2):
        if one.path == other.path or one.path in other.path.parents or other.path in one.path.parents:
            relation = "the same folder as" if one.path == other.path else "nested with"
            found, near = (describe(str(each.path), longest=400) for each in (other, one))
            yield f"{place}: found {found}, {relation} {near}; allowed: separate folders"


def _unused_name(path: Path, taken: set[str]) -> str:
    name = clean_name(path.name)[:60] or "root"
    return next(each for number in count(1) if (each := name if number == 1 else f"{name}-{number}") not in taken)


def _real(path: Path) -> Path:
    """The path without symlinks; whether it exists is for the running daemon to see."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a symlink that leads to itself: unavailable, like an unmounted folder
        return path.absolute()
