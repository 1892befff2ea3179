"""A workspace on disk: which files are in it, and what can be told of them without reading them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.jobs.scope import ScopeRule
from memoryd.jobs.sessions.rules import SegmentRules
from memoryd.store.errors import WorkspaceUnavailable
from memoryd.store.globs import matches_any, static_prefix

_AWAY = "Is the disk mounted? Nothing is forgotten meanwhile; indexing resumes when the folder is back"


@dataclass(frozen=True, slots=True)
class Workspace:
    name: str
    root: Path  # absolute, without symlinks
    include: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    evergreen: tuple[str, ...] = ()
    scopes: tuple[ScopeRule, ...] = ()  # the first that says something about a path counts
    transcripts: SegmentRules | None = None  # how its files, session transcripts, are cut; None = they are notes
    source: str = ""  # of all its documents; "": told by their paths

    def covers(self, path: str) -> bool:
        """Whether a file of this relative path is one to index."""
        return matches_any(path, self.include) and not self.ignores(path)

    def file_of(self, path: str) -> str:
        """The file that a document is in, or that a file is."""
        file, _, ordinal = path.rpartition("/")
        is_segment = self.transcripts is not None and ordinal.isdigit() and self.covers(file)
        return file if is_segment and not self.covers(path) else path

    def ignores(self, path: str) -> bool:
        """A file or folder is passed over if it or any folder above it matches an ignore pattern."""
        parts = path.split("/")
        return any(matches_any("/".join(parts[:depth]), self.ignore) for depth in range(1, len(parts) + 1))

    def folders(self) -> list[str]:
        """The folders, relative to the root, in which everything included lies; "" is the root itself."""
        prefixes = sorted({static_prefix(pattern) for pattern in self.include})
        return [p for p in prefixes if not any(p.startswith(f"{o}/") for o in prefixes if o and o != p)]

    def is_deep(self, folder: str) -> bool:
        """Whether anything below this folder's own files can be included."""
        inside = [pattern for pattern in self.include if _is_at_or_below(static_prefix(pattern), folder)]
        rest = [pattern[len(folder) :].removeprefix("/") for pattern in inside]
        return any("/" in pattern or "**" in pattern or not pattern for pattern in rest)

    def may_hold(self, folder: str) -> bool:
        """Whether a file in this folder, or below it, can be one to index."""
        return any(_may_match_below(folder, pattern) for pattern in self.include) and not self.ignores(folder)


@dataclass(slots=True)
class Scan:
    """What a look at the disk found. What could not be looked at is named, never taken for gone."""

    files: dict[str, str] = field(default_factory=dict)  # path -> signature
    unreadable: dict[str, str] = field(default_factory=dict)  # folder or file -> reason
    skipped: dict[str, str] = field(default_factory=dict)  # links and odd files -> reason

    def could_look(self, path: str) -> bool:
        """Whether this scan would have seen the file if it were there."""
        return not any(path == blind or path.startswith(f"{blind}/") or blind == "" for blind in self.unreadable)


def signature_of(found: os.stat_result) -> str:
    """What changes whenever a file's content does. The change time cannot be set back, as mtime can."""
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}:{found.st_dev}"


def check_available(workspace: Workspace) -> None:
    """A root that cannot be looked at is an error, never a mass delete."""
    try:
        os.scandir(workspace.root).close()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and workspace.transcripts is not None:
            return  # a harness that was never used; check_same_disk tells it from one that is away
        raise WorkspaceUnavailable(f"{workspace.root} cannot be read: {error.strerror}", hint=_AWAY) from error


def check_same_disk(workspace: Workspace, known: Mapping[str, str]) -> None:
    """Where nothing is found any more: raise if that is because the disk of the known files is not mounted.

    ``known`` is path -> signature. What is left of an unmounted disk is an empty folder on another one.
    """
    if known and not workspace.root.is_dir():
        raise WorkspaceUnavailable(f"{workspace.root} is not there any more", hint=_AWAY)
    devices = {path: signature.rpartition(":")[2] for path, signature in known.items() if signature}
    if devices and not any(_device_at(workspace, path) == device for path, device in devices.items()):
        raise WorkspaceUnavailable(f"{workspace.root} is empty, and not on the disk that it was on", hint=_AWAY)


def _device_at(workspace: Workspace, path: str) -> str:
    """The device of the deepest folder above a path that is still there."""
    folder = (workspace.root / path).parent
    while folder != workspace.root and not folder.is_dir():
        folder = folder.parent
    return str(folder.stat().st_dev)


def scan(workspace: Workspace, below: str = "") -> Scan:
    """Look at the files of a workspace, or of one file or folder in it. Raises if the root cannot be looked at."""
    check_available(workspace)
    result = Scan()
    for path, found in _walk(workspace, below, result):
        result.files[path] = signature_of(found)
    return result


def _walk(workspace: Workspace, below: str, result: Scan) -> Iterator[tuple[str, os.stat_result]]:
    linked: set[str] = set()  # targets of links that were followed, so that links in a circle end
    waiting = [""]
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(workspace.root / current) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            result.unreadable[current] = error.strerror or str(error)
            continue
        for entry in listing:
            path = f"{current}/{entry.name}" if current else entry.name
            on_the_way = not below or _is_at_or_below(path, below) or _is_at_or_below(below, path)
            is_covered = on_the_way and workspace.covers(path)
            wanted = is_covered or (on_the_way and workspace.may_hold(path))
            found = _look(workspace, path, entry, result, linked, is_covered) if wanted else None
            if found is None:
                continue
            if stat.S_ISDIR(found.st_mode):
                if workspace.may_hold(path):
                    waiting.append(path)
            elif is_covered:
                if stat.S_ISREG(found.st_mode):
                    yield path, found
                else:
                    result.skipped[path] = "not a regular file"


def _look(
    workspace: Workspace, path: str, entry: os.DirEntry[str], result: Scan, linked: set[str], is_covered: bool
) -> os.stat_result | None:
    """The stat of an entry, through links that stay inside the root; None = passed over, or gone meanwhile."""
    try:
        if is_covered or entry.is_dir(follow_symlinks=False):
            path.encode()
        if entry.is_symlink() and not _follows(workspace, path, entry, result, linked):
            return None
        return entry.stat()
    except UnicodeEncodeError:
        result.skipped[path.encode(errors="surrogateescape").decode(errors="replace")] = "its name is not UTF-8"
    except FileNotFoundError:
        pass
    except OSError as error:
        result.unreadable[path] = error.strerror or str(error)
    return None


def _follows(workspace: Workspace, path: str, entry: os.DirEntry[str], result: Scan, linked: set[str]) -> bool:
    """Whether a link is followed: to a file in the workspace, or to a folder that is not looked at anyway."""
    target = Path(os.path.realpath(entry.path))
    is_folder = target.is_dir()
    if not target.exists():
        if workspace.covers(path):
            result.skipped[path] = "a link to nothing"
        return False
    if not target.is_relative_to(workspace.root):
        if is_folder or workspace.covers(path):
            result.skipped[path] = "a link to outside of the workspace"
        return False
    if not is_folder:
        return True
    real = target.relative_to(workspace.root).as_posix()
    if real == "." or workspace.may_hold(real) or real in linked:
        return False  # its files are found under their own names
    linked.add(real)
    return True


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or (folder != "" and path.startswith(f"{folder}/"))


def _may_match_below(folder: str, pattern: str) -> bool:
    """Whether a path below the folder can match; the pattern is compared as far as the folder goes."""
    parts = (f"{pattern}**" if pattern.endswith("/") else pattern).split("/")
    for depth, name in enumerate(folder.split("/")):
        if "**" in parts[depth]:
            return True
        if depth == len(parts) - 1 or not matches_any(name, (parts[depth],)):
            return False
    return True
