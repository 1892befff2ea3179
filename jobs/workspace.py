"""A workspace on disk: which files are in it, and what can be told of them without reading them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.store.errors import WorkspaceUnavailable
from memoryd.store.globs import matches_any, static_prefix


@dataclass(frozen=True, slots=True)
class Workspace:
    name: str
    root: Path  # absolute, without symlinks
    include: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    evergreen: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Whether a file of this relative path is one to index."""
        return matches_any(path, self.include) and not self.ignores(path)

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
        rest = [pattern[len(folder) :].lstrip("/") for pattern in self.include if static_prefix(pattern) == folder]
        return any("/" in pattern or "**" in pattern for pattern in rest)


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
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}"


def check_available(workspace: Workspace) -> None:
    """A root that cannot be looked at is an error, never a mass delete."""
    try:
        os.scandir(workspace.root).close()
    except OSError as error:
        raise WorkspaceUnavailable(
            f"{workspace.root} cannot be read: {error.strerror}",
            hint="Is the disk mounted? Nothing is forgotten meanwhile; indexing resumes when the folder is back",
        ) from error


def scan(workspace: Workspace, below: str = "") -> Scan:
    """Look at the files of a workspace, or of one folder in it. Raises if the root cannot be looked at."""
    check_available(workspace)
    result = Scan()
    visited: set[tuple[int, int]] = set()
    for folder in workspace.folders():
        for path, entry in _walk(workspace, folder, result, visited):
            if below and path != below and not path.startswith(f"{below}/"):
                continue
            result.files[path] = signature_of(entry)
    return result


def _walk(
    workspace: Workspace, folder: str, result: Scan, visited: set[tuple[int, int]]
) -> Iterator[tuple[str, os.stat_result]]:
    deep = workspace.is_deep(folder)
    waiting = [folder]
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
            if workspace.ignores(path):
                continue
            found = _look(workspace, path, entry, result)
            if found is None:
                continue
            if stat.S_ISDIR(found.st_mode):
                if deep and (found.st_dev, found.st_ino) not in visited:
                    visited.add((found.st_dev, found.st_ino))
                    waiting.append(path)
            elif workspace.covers(path):
                if not stat.S_ISREG(found.st_mode):
                    result.skipped[path] = "not a regular file"
                else:
                    yield path, found


def _look(workspace: Workspace, path: str, entry: os.DirEntry[str], result: Scan) -> os.stat_result | None:
    """The stat of an entry, through links that stay inside the root; None = passed over, or gone meanwhile."""
    try:
        path.encode()
    except UnicodeEncodeError:
        result.skipped[path.encode(errors="surrogateescape").decode(errors="replace")] = "its name is not UTF-8"
        return None
    try:
        if entry.is_symlink():
            target = Path(os.path.realpath(entry.path))
            if not target.is_relative_to(workspace.root):
                if workspace.covers(path) or target.is_dir():
                    result.skipped[path] = "a link to outside of the workspace"
                return None
            if not target.exists():
                result.skipped[path] = "a link to nothing"
                return None
        return entry.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        result.unreadable[path] = error.strerror or str(error)
        return None
