"""Which files facts are made of, read as every file is: never through a link that leads out of the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memoryd.jobs.markdown import read_front_matter
from memoryd.jobs.reading import decode_text, read_file
from memoryd.jobs.scope import document_scope
from memoryd.jobs.workspace import Workspace, scan
from memoryd.store.errors import MemorydError, WorkspaceUnavailable
from memoryd.store.globs import matches_any
from memoryd.store.scope import UNKNOWN


@dataclass(frozen=True, slots=True)
class SourceFile:
    workspace: str
    path: str
    text: str
    scope: str


@dataclass(slots=True)
class Sources:
    files: list[SourceFile] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # path -> why
    withheld: set[str] = field(default_factory=set)  # of those: who they are for cannot be told, so nobody gets them
    _globs: tuple[str, ...] = ()
    _blind: tuple[str, ...] = ()  # what could not be looked at

    def is_gone(self, path: str, *, everything: bool) -> bool:
        """Whether facts of this path have lost their source. What could not be looked at is not gone.

        ``everything``: these are all the files there are, so that what no glob names any more is gone too.
        """
        if path in self.withheld:
            return True
        if path in self.skipped or any(path == file.path for file in self.files):
            return False
        if any(blind == "" or path == blind or path.startswith(f"{blind}/") for blind in self._blind):
            return False
        return everything or matches_any(path, self._globs)


def read_sources(workspace: Workspace, globs: Sequence[str], max_file_bytes: int, known: Sequence[str]) -> Sources:
    """``known`` are the paths that facts are of already: where none of them is left, the disk may be away.

    Raises ``WorkspaceUnavailable`` if the root cannot be looked at.
    """
    wider = replace(workspace, include=tuple(globs))
    found = scan(wider)
    if not found.files and known and not any(workspace.root.iterdir()):
        raise WorkspaceUnavailable(
            f"{workspace.root} is empty", hint="Is the disk mounted? Its facts are kept until there are files again"
        )
    sources = Sources(_globs=tuple(globs), _blind=tuple(found.unreadable))
    sources.skipped.update(found.unreadable)
    for path in sorted(found.files):
        try:
            file = read_file(workspace.root / path, workspace.root, max_file_bytes)
        except MemorydError as error:
            sources.skipped[path] = error.message
            continue
        if file is None:
            continue  # gone since
        if file.too_large:
            sources.skipped[path] = f"{file.size:,} bytes, more than index.max_file_bytes"
            continue
        text, _ = decode_text(file.data)
        if text is None:
            sources.skipped[path] = "not text"
            continue
        scope, remark = document_scope(path, text, read_front_matter(text), workspace.scopes)
        if scope == UNKNOWN:
            sources.skipped[path] = (remark or "its scope cannot be read").partition(";")[0]
            sources.withheld.add(path)
            continue
        sources.files.append(SourceFile(workspace.name, path, text, scope))
    return sources
