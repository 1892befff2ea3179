"""What each method takes: one frozen dataclass per method, the same names as the command line's options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from memoryd.daemon.config import EMBEDDING_PROVIDERS
from memoryd.daemon.params import rule
from memoryd.daemon.protocol import KINDS
from memoryd.store.errors import InvalidParams
from memoryd.store.scope import ALLOWED, parse_scope

LONGEST_QUERY = 20_000  # characters; a page of text
LONGEST_GLOB = 500
LAST_LINE = 999_999_999  # what fits the nine digits of PATH:FROM-TO
_PLACE = re.compile(r"(?P<path>.+)(?::|#L)(?P<first>[0-9]{1,9})(?:-(?:L?(?P<last>[0-9]{1,9}))?)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Finds chunks by words and by meaning."""

    query: str = field(metadata=rule("What to look for, in any words.", blank=False, longest=LONGEST_QUERY))
    limit: int | None = field(
        default=None, metadata=rule("How many hits at most; null: as configured.", minimum=1, maximum=100)
    )
    min_score: float | None = field(
        default=None, metadata=rule("Leave out hits that score less.", minimum=0, maximum=1)
    )
    source: tuple[str, ...] = field(
        default=(),
        metadata=rule("Only these sources, such as memory, skills, facts or sessions.", blank=False, most=100),
    )
    path: tuple[str, ...] = field(
        default=(),
        metadata=rule(
            "Only documents whose path matches one of these globs.", blank=False, longest=LONGEST_GLOB, most=100
        ),
    )
    workspace: tuple[str, ...] = field(default=(), metadata=rule("Only these workspaces.", blank=False))
    explain: bool = field(default=False, metadata=rule("Say how each score came about."))
    hyde: bool | None = field(
        default=None, metadata=rule("Search by a hypothetical answer of the language model; null: as configured.")
    )
    rerank: bool | None = field(
        default=None, metadata=rule("Have a cross-encoder read the best passages; null: as configured.")
    )
    scope: str | None = field(
        default=None, metadata=rule("Who asks: sees what is global and what is its own; null: everything.", blank=False)
    )
    exclude: tuple[str, ...] = field(
        default=(),
        metadata=rule(
            "Ids of hits, or paths or globs, that the caller has already.",
            blank=False,
            longest=LONGEST_GLOB,
            most=1000,
        ),
    )
    after: date | None = field(default=None, metadata=rule("Only notes dated this day or later."))
    before: date | None = field(default=None, metadata=rule("Only notes dated this day or earlier."))
    as_of: date | None = field(
        default=None, metadata=rule("As if it were this day: notes dated later are invisible, ages count from it.")
    )
    include_superseded: bool = field(default=False, metadata=rule("Show superseded notes too, marked."))
    fence: bool = field(default=False, metadata=rule("Put the text of notes between two lines that no note can write."))
    settings: Mapping[str, Any] | None = field(
        default=None,
        metadata=rule("Settings of [search] for this query alone, by the configuration's keys; null: as in force."),
    )

    cached: bool = field(
        default=True,
        metadata=rule("Use the query's vector if it was asked before; false: embed it anew and keep nothing of it."),
    )

    def __post_init__(self) -> None:
        if self.scope is not None:
            scope = parse_scope(self.scope)
            if scope is None:
                raise InvalidParams(f"{self.scope[:60]!r} is not a scope.", hint=f"A scope is {ALLOWED}.")
            object.__setattr__(self, "scope", scope)
        if self.after and self.before and self.after > self.before:
            raise InvalidParams("No day is both after and before: after is the later one.", hint="Swap the two.")


@dataclass(frozen=True, slots=True)
class WhyNotRequest(SearchRequest):
    """Tells where a passage was lost on its way into a search's hits. Takes what ``search`` takes, and the passage."""

    passage: str = field(
        kw_only=True, metadata=rule("The passage: PATH:LINE or PATH#LLINE, relative to its workspace.", blank=False)
    )
    line: int | None = field(
        default=None,
        kw_only=True,
        metadata=rule("The line, from 1, where passage does not name it.", minimum=1, maximum=LAST_LINE),
    )

    def __post_init__(self) -> None:
        SearchRequest.__post_init__(self)  # with slots, super() knows the class as it was before them
        place = _PLACE.fullmatch(self.passage) if self.line is None else None
        if place:
            object.__setattr__(self, "passage", place["path"])
            object.__setattr__(self, "line", int(place["first"]))
        if not self.line:
            raise InvalidParams("passage names no line, which are counted from 1.", hint="Write PATH:LINE.")


@dataclass(frozen=True, slots=True)
class GetRequest:
    """Reads a document or some of its lines. ``path`` may be a citation: ``notes.md#L10-L20``, ``notes.md:10-20``.

    At most 1 MiB of whole lines is answered at a time; ``next`` is the line to go on from.
    """

    path: str = field(
        metadata=rule("The document, relative to its workspace: PATH[#LFROM[-LTO]] or PATH[:FROM[-TO]].", blank=False)
    )
    from_line: int | None = field(
        default=None, metadata=rule("First line, from 1.", name="from", minimum=1, maximum=LAST_LINE)
    )
    to_line: int | None = field(
        default=None, metadata=rule("Last line, inclusive.", name="to", minimum=1, maximum=LAST_LINE)
    )
    workspace: str | None = field(
        default=None, metadata=rule("Which workspace, where several have the path.", blank=False)
    )
    fence: bool = field(default=False, metadata=rule("Put the text between two lines that no note can write."))

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
class SettingsGetRequest:
    """Tells the settings of [search] in force, and where each comes from. Takes nothing."""


@dataclass(frozen=True, slots=True)
class SettingsSetRequest:
    """Changes settings of [search] for every query from the next one on, until memoryd stops."""

    settings: Mapping[str, Any] | None = field(
        default=None, metadata=rule("The settings that change, by the configuration's keys.")
    )
    persist: bool = field(default=False, metadata=rule("Write them into the configuration file too."))
    reset: bool = field(default=False, metadata=rule("First go back to what is configured."))

    def __post_init__(self) -> None:
        if not self.settings and (self.persist or not self.reset):
            raise InvalidParams(
                "settings names nothing to change.", hint='Send "settings": {"fusion": "rrf"}, or "reset": true alone.'
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
class VerifyRequest:
    """Proves that files, ledger, keyword indexes and vectors say the same, or tells where they do not."""

    repair: bool = field(default=False, metadata=rule("Put right what is not in sync, and look again."))
    workspace: tuple[str, ...] = field(default=(), metadata=rule("Only these workspaces.", blank=False))


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """Has the language model find facts in skills and docs, and stores them. Answers when it is done."""

    paths: tuple[str, ...] = field(
        default=(), metadata=rule("Only files that match one of these globs; none: as configured.", blank=False)
    )
    workspace: tuple[str, ...] = field(default=(), metadata=rule("Only these workspaces.", blank=False))
    dry_run: bool = field(default=False, metadata=rule("Ask nobody and store nothing: tell what would be done."))

    def __post_init__(self) -> None:
        if any(glob.startswith("/") or ".." in glob.split("/") or "\0" in glob for glob in self.paths):
            raise InvalidParams("paths leads out of the workspace.", hint='Globs are relative to it: "skills/**/*.md".')


@dataclass(frozen=True, slots=True)
class IngestStatusRequest:
    """Tells how far an ingest is, and what came of the last one. Takes nothing."""


@dataclass(frozen=True, slots=True)
class FactsListRequest:
    """Lists the facts that ingest has made."""

    workspace: tuple[str, ...] = field(default=(), metadata=rule("Only those of these workspaces.", blank=False))
    path: tuple[str, ...] = field(
        default=(), metadata=rule("Only those made of files that match one of these globs.", blank=False)
    )
    category: tuple[str, ...] = field(default=(), metadata=rule("Only these categories.", blank=False))
    superseded: bool = field(default=False, metadata=rule("Those too whose source passage is gone."))


@dataclass(frozen=True, slots=True)
class FactsShowRequest:
    """Shows a fact and the passage that it was made of."""

    id: str = field(metadata=rule("Its id, the beginning of it, or the path that a hit has.", blank=False))


@dataclass(frozen=True, slots=True)
class FactsForgetRequest:
    """Removes facts for good: they are not made of the same files again."""

    id: tuple[str, ...] = field(metadata=rule("Their ids, as for facts.show.", blank=False))


@dataclass(frozen=True, slots=True)
class ModelUseRequest:
    """Goes over to another embedding model, without a restart and without a gap."""

    model: str = field(
        metadata=rule(
            "A name from the catalogue, a .gguf file, hf:org/repo/file.gguf, or what the service calls it.", blank=False
        )
    )
    provider: str | None = field(
        default=None,
        metadata=rule(
            "Who embeds: local, or a service that notes are sent to; as configured unless given.",
            choices=EMBEDDING_PROVIDERS,
        ),
    )
    base_url: str | None = field(
        default=None, metadata=rule("Where the service is asked; its own address unless given.")
    )


@dataclass(frozen=True, slots=True)
class ModelRollbackRequest:
    """Searches by the model before again, or gives up a switch that is under way. Takes nothing."""


@dataclass(frozen=True, slots=True)
class ModelPruneRequest:
    """Removes the vectors of models that are neither searched by nor being filled. Takes nothing."""


@dataclass(frozen=True, slots=True)
class PingRequest:
    """Answers at once. Takes nothing."""


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """Reads the configuration again and goes on by it. Takes nothing."""


@dataclass(frozen=True, slots=True)
class InitializeRequest:
    """Tells what the server is and can do. Good manners, not a duty: every method works without it."""

    protocol_version: int | None = field(
        default=None, metadata=rule("The version that the client speaks; another one than ours is refused.", minimum=1)
    )
    client: str | None = field(default=None, metadata=rule("Who asks, such as nvim/0.11; for the log.", blank=False))


@dataclass(frozen=True, slots=True)
class EventsSubscribeRequest:
    """Has the server tell what happens, in notifications; in place of what the client subscribed to before."""

    events: tuple[str, ...] = field(default=KINDS, metadata=rule("What to tell; all unless said.", choices=KINDS))
    workspace: tuple[str, ...] = field(
        default=(), metadata=rule("Only the documents of these workspaces.", blank=False)
    )


@dataclass(frozen=True, slots=True)
class EventsUnsubscribeRequest:
    """Ends the subscription. Takes nothing."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Withdraws a request of the same connection; it is answered with the error cancelled, or was answered already."""

    id: str | int | float = field(metadata=rule("The id of the request."))


@dataclass(frozen=True, slots=True)
class RpcDiscoverRequest:
    """Describes every method as OpenRPC. Takes nothing."""
