"""What each method takes: one frozen dataclass per method, the same names as the command line's options."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memoryd.daemon.params import rule
from memoryd.store.errors import InvalidParams

LAST_LINE = 999_999_999  # what fits the nine digits of PATH:FROM-TO
_PLACE = re.compile(r"(?P<path>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})?)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Finds chunks by words and by meaning."""

    query: str = field(metadata=rule("What to look for, in any words.", blank=False))
    limit: int | None = field(
        default=None, metadata=rule("How many hits at most; null: as configured.", minimum=1, maximum=100)
    )
    min_score: float | None = field(
        default=None, metadata=rule("Leave out hits that score less.", minimum=0, maximum=1)
    )
    source: tuple[str, ...] = field(
        default=(), metadata=rule("Only these sources, such as memory or skills.", blank=False)
    )
    path: tuple[str, ...] = field(
        default=(), metadata=rule("Only documents whose path matches one of these globs.", blank=False)
    )
    workspace: tuple[str, ...] = field(default=(), metadata=rule("Only these workspaces.", blank=False))
    explain: bool = field(default=False, metadata=rule("Say how each score came about."))


@dataclass(frozen=True, slots=True)
class GetRequest:
    """Reads a document or some of its lines. ``path`` may name the lines itself: ``notes.md:10-20``."""

    path: str = field(metadata=rule("The document, relative to its workspace: PATH[:FROM[-TO]].", blank=False))
    from_line: int | None = field(
        default=None, metadata=rule("First line, from 1.", name="from", minimum=1, maximum=LAST_LINE)
    )
    to_line: int | None = field(
        default=None, metadata=rule("Last line, inclusive.", name="to", minimum=1, maximum=LAST_LINE)
    )
    workspace: str | None = field(
        default=None, metadata=rule("Which workspace, where several have the path.", blank=False)
    )

    def __post_init__(self) -> None:
        if place := _PLACE.fullmatch(self.path):
            if self.from_line is not None or self.to_line is not None:
                raise InvalidParams("The lines are named twice: in path and in from or to.")
            object.__setattr__(self, "path", place["path"])
            object.__setattr__(self, "from_line", int(place["first"]))
            object.__setattr__(self, "to_line", int(place["last"]) if place["last"] else None)
        if self.from_line == 0 or self.to_line == 0:
            raise InvalidParams("Lines are counted from 1.")
        if self.to_line is not None and self.to_line < (self.from_line or 1):
            raise InvalidParams("The last line comes before the first.", hint="Write PATH:FROM-TO.")


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Tells how the daemon is."""

    brief: bool = field(
        default=False, metadata=rule("Only how far indexing is: cheap enough to ask many times a second.")
    )


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """Brings the index up to date with the files."""

    force: bool = field(default=False, metadata=rule("Index again even what has not changed."))
    path: tuple[str, ...] = field(
        default=(), metadata=rule("Only these files or folders; none: everything.", blank=False)
    )
    workspace: tuple[str, ...] = field(default=(), metadata=rule("Only these workspaces.", blank=False))
    wait: bool = field(default=True, metadata=rule("Answer when the index is current, not at once."))


@dataclass(frozen=True, slots=True)
class PingRequest:
    """Answers at once. Takes nothing."""
