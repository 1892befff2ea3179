"""What the daemon answers, as Python's clients give it: typed, frozen, and with the whole answer in ``raw``.

A newer daemon may say more than is typed here (``raw`` has it); an older one may lack what has a default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, TypedDict

from memoryd.store.errors import MemorydError

Raw = Mapping[str, Any]


class SearchOptions(TypedDict, total=False):
    """What ``search`` takes besides the query: the parameters of the socket's method."""

    limit: int
    min_score: float
    source: str | Sequence[str]
    path: str | Sequence[str]
    workspace: str | Sequence[str]
    scope: str
    exclude: str | Sequence[str]
    after: date | str
    before: date | str
    as_of: date | str
    include_superseded: bool
    hyde: bool
    rerank: bool
    settings: Mapping[str, Any]
    explain: bool
    fence: bool
    cached: bool


class GetOptions(TypedDict, total=False):
    """What ``get`` takes besides the path."""

    from_line: int
    to_line: int
    workspace: str
    fence: bool


def get_params(path: str, options: GetOptions) -> dict[str, Any]:
    """The parameters as the wire names them: ``from`` is no name in Python."""
    names = {"from_line": "from", "to_line": "to"}
    return {"path": path, **{names.get(name, name): value for name, value in options.items()}}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fact comes from."""

    workspace: str
    path: str
    start_line: int
    end_line: int
    citation: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked chunk."""

    workspace: str
    path: str  # relative to the workspace
    start_line: int  # from 1, inclusive
    end_line: int
    citation: str  # PATH#LFROM-LTO, which ``get`` takes
    score: float  # 0 to 1, comparable between queries
    snippet: str
    snippet_line: int  # where the snippet begins in the file
    highlights: tuple[tuple[int, int], ...]  # ranges of the snippet
    best: tuple[int, int]  # the lines of the best passage
    source: str
    heading: str
    date: date | None
    scope: str
    id: str
    superseded: bool
    superseded_by: str | None
    raw: Raw = field(repr=False, compare=False)
    origin: Origin | None = None  # of a fact


@dataclass(frozen=True, slots=True)
class Remark:
    """What must be known to judge an answer, or the daemon: the reason and its remedy."""

    reason: str
    hint: str | None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to a query."""

    query: str
    results: tuple[Hit, ...]  # best first
    absence: Remark | None  # why there are no hits
    degraded: Remark | None  # the leg that did not run; ``raw`` names it
    pending: tuple[str, ...]  # files that are not wholly searchable yet, as far as they may be named
    pending_count: int
    took_ms: float
    raw: Raw = field(repr=False, compare=False)
    doubt: Remark | None = None  # why the hits may well answer something else
    missing: tuple[str, ...] = ()  # words of the query that nothing has that it may see


@dataclass(frozen=True, slots=True)
class Document:
    """A document, or some of its lines, as they were on disk when asked for."""

    workspace: str
    path: str
    start_line: int
    end_line: int
    lines: int  # of the whole document
    text: str
    next: int | None  # the first line that was asked for and did not fit; None: all of them are here
    raw: Raw = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class WorkspaceStatus:
    """One workspace: where it is and how far its index is."""

    name: str
    root: str
    available: bool
    indexed: int
    pending: int
    failed: int


@dataclass(frozen=True, slots=True)
class Status:
    """How the daemon is."""

    version: str
    pid: int
    started_at: datetime
    state: str  # ok, indexing or degraded
    reasons: tuple[Remark, ...]  # why it is degraded
    workspaces: tuple[WorkspaceStatus, ...]
    raw: Raw = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in the daemon."""

    kind: str  # document, progress or health; dropped: so many were lost because the client was slow
    raw: Raw

    @classmethod
    def read(cls, message: Raw) -> Event | None:
        """The event that a message tells, if it does."""
        kind = str(message.get("method", "")).removeprefix("events.")
        told = kind != message.get("method", "") and isinstance(message.get("params"), Mapping)
        return cls(kind, message["params"]) if told else None


def read_search(raw: Raw) -> SearchResult:
    with _understanding():
        return SearchResult(
            query=raw["query"],
            results=tuple(_hit(hit) for hit in raw["results"]),
            absence=_remark(raw.get("absence")),
            degraded=_remark(raw["degraded"]),
            pending=tuple(entry["path"] for entry in raw["pending"]),
            pending_count=raw["pending_count"],
            took_ms=raw["took_ms"],
            raw=raw,
            doubt=_remark(raw.get("doubt")),
            missing=tuple(raw.get("missing", ())),
        )


def read_document(raw: Raw) -> Document:
    names = ("workspace", "path", "start_line", "end_line", "lines", "text")
    with _understanding():
        return Document(**{name: raw[name] for name in names}, next=raw.get("next"), raw=raw)


def read_status(raw: Raw) -> Status:
    with _understanding():
        return Status(
            version=raw["version"],
            pid=raw["pid"],
            started_at=datetime.fromisoformat(raw["started_at"]),
            state=raw["health"]["state"],
            reasons=tuple(Remark(each["message"], each["hint"], each["code"]) for each in raw["health"]["reasons"]),
            workspaces=tuple(_workspace(each) for each in raw["workspaces"]),
            raw=raw,
        )


def _hit(raw: Raw) -> Hit:
    return Hit(
        workspace=raw["workspace"],
        path=raw["path"],
        start_line=raw["start_line"],
        end_line=raw["end_line"],
        citation=raw["citation"],
        score=raw["score"],
        snippet=raw["snippet"],
        snippet_line=raw["snippet_line"],
        highlights=tuple((start, end) for start, end in raw["highlights"]),
        best=(raw["best"]["start_line"], raw["best"]["end_line"]),
        source=raw["source"],
        heading=raw["heading"],
        date=date.fromisoformat(raw["date"]) if raw["date"] else None,
        scope=raw["scope"],
        id=raw["id"],
        superseded=raw.get("superseded", False),
        superseded_by=raw.get("superseded_by"),
        raw=raw,
        origin=Origin(**{name: origin[name] for name in Origin.__slots__}) if (origin := raw.get("origin")) else None,
    )


def _workspace(raw: Raw) -> WorkspaceStatus:
    names = ("name", "root", "available", "indexed", "pending")
    return WorkspaceStatus(**{name: raw[name] for name in names}, failed=len(raw["failed"]))


def _remark(raw: Raw | None) -> Remark | None:
    return Remark(raw["reason"], raw.get("hint")) if raw else None


@contextmanager
def _understanding() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MemorydError(
            f"The daemon's answer cannot be understood: {type(error).__name__} {error}.",
            hint="Are this client and the daemon of the same version? See 'memoryd --version' and 'memoryd status'.",
        ) from error
