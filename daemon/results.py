"""What each method answers, as types that the description is generated from.

``<Name>Result`` belongs to the method of ``<Name>Request``. What is said here is held against the answers of a real
server by the tests. What is told unasked is in notifications.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from memoryd.daemon.search_results import Degraded, Fence, Lines, Origin, SearchResult, WhyNotResult

__all__ = ["SearchResult", "WhyNotResult"]  # found here by their methods' names, as all the others


class Limits(TypedDict):
    """What the server takes on; see docs/protocol.md."""

    max_request_bytes: int
    max_batch: int
    max_connections: int
    max_in_flight: Annotated[int, "Unanswered messages of one connection; beyond it the server stops reading."]
    max_answer_bytes: Annotated[int, "Answers of one connection's batches that are not sent yet."]
    request_timeout_s: float
    arrival_timeout_s: Annotated[float, "For the rest of a message that has begun to arrive."]
    idle_timeout_s: float | None
    event_queue: Annotated[int, "Events that wait for one subscriber; beyond it the oldest are dropped, and counted."]


class Capabilities(TypedDict):
    framings: list[Literal["lines", "headers"]]
    batches: bool
    cancel: Annotated[str, "The notification that withdraws a request."]
    events: list[str]
    fence: bool


class InitializeResult(TypedDict):
    name: str
    version: str
    protocol_version: int
    pid: int
    capabilities: Capabilities
    methods: list[str]
    limits: Limits


class PingResult(TypedDict):
    pong: Literal[True]
    version: str
    pid: int


class GetResult(TypedDict):
    workspace: str
    path: str
    start_line: Lines
    end_line: Lines
    lines: Annotated[int, "Of the whole document."]
    text: str
    next: Annotated[int | None, "The first line that was asked for and did not fit; ask again from there."]
    origin: NotRequired[Origin | None]
    fence: NotRequired[Fence]


class WorkspaceTotals(TypedDict):
    name: str
    documents: int
    skipped: int
    chunks: int
    passages: int
    vectors: int


class Failed(TypedDict):
    workspace: str
    path: str
    reason: str
    hint: str | None


class IndexResult(TypedDict):
    complete: bool
    workspaces: list[WorkspaceTotals]
    failed: list[Failed]
    degraded: Degraded | None
    paused: Annotated[str | None, "Why what is new is found by its words alone for now."]
    took_ms: float


class SettingChange(TypedDict):
    live: Any
    configured: Any


class SettingsGetResult(TypedDict):
    settings: Annotated[dict[str, Any], "The [search] table in force."]
    origin: Annotated[dict[str, str], "By key: default, file, environment or live."]
    changed: Annotated[dict[str, SettingChange], "What is not as configured."]
    file: str | None


SettingsSetResult = SettingsGetResult


class Reason(TypedDict):
    """Why the health is not ok."""

    code: str
    message: str
    hint: str | None


class Health(TypedDict):
    state: Literal["ok", "indexing", "degraded"]
    reasons: list[Reason]


class EmbedderProgress(TypedDict):
    state: str
    reason: str | None
    stage: str | None
    done: int
    total: int | None


class BriefStatus(TypedDict):
    """How far indexing is: with ``brief``."""

    current: Annotated[bool, "Nothing is left to do that can be done now."]
    documents: int
    chunks: int
    passages: int
    vectors: int
    pending: int
    embedder: EmbedderProgress


class FullStatus(TypedDict):
    """How the daemon is."""

    version: str
    pid: int
    started_at: str
    uptime_s: float
    health: Health
    workspaces: list[dict[str, Any]]
    embedder: dict[str, Any]
    stores: dict[str, Any]
    queue: dict[str, Any]
    scheduler: dict[str, str]
    server: dict[str, Any]
    last_errors: list[dict[str, Any]]
    config_file: str | None
    live_settings: dict[str, SettingChange]
    notes: list[str]


StatusResult = BriefStatus | FullStatus


class Drift(TypedDict):
    """Something that is not in sync."""

    kind: str
    store: str
    workspace: str
    path: Annotated[str, "Empty where it is about no document."]
    count: int
    message: str


class VerifyResult(TypedDict):
    in_sync: bool
    root: Annotated[str | None, "One digest over everything; the same files and model give the same."]
    drift: list[Drift]
    repaired: list[Drift]
    pending: Annotated[int, "Documents in hand: neither right nor wrong."]
    documents: int
    chunks: int
    vectors: int
    took_ms: float


class ReloadResult(TypedDict):
    changed: Annotated[list[str], "Settings and workspaces that changed."]
    needs_restart: Annotated[list[str], "Settings that wait for a restart."]


class Fact(TypedDict):
    """A statement that ingest found."""

    id: str
    text: str
    path: Annotated[str, "Of its file, in the workspace facts; get takes it."]
    origin: Origin
    category: str
    tags: list[str]
    decay: Annotated[str, "permanent, durable, normal, short or ephemeral."]
    scope: str
    created: str
    used: Annotated[str | None, "When it was last found, where that makes it last longer."]
    expires: str | None
    superseded_by: Annotated[str | None, "The file of another fact, or gone: its source passage is not there any more."]


class FactsShowResult(Fact):
    passage: Annotated[str | None, "The lines that it was made of, as they are now."]


class FactsListResult(TypedDict):
    facts: list[Fact]


class FactsForgetResult(TypedDict):
    forgotten: list[Fact]


class IngestCounts(TypedDict):
    files: int
    pieces: int
    answered: Annotated[int, "Pieces with an answer."]
    kept: Annotated[int, "Of those, answered by an earlier run."]
    asked: Annotated[int, "Calls of the language model that were answered."]
    bad_lines: Annotated[int, "Of answers, that were no fact."]
    facts: Annotated[int, "That hold in the end; 0 while it runs."]
    stored: int
    changed: Annotated[int, "Their source passage moved, changed around them, or came back."]
    superseded: int
    duplicates: Annotated[int, "Not stored: another fact says the same."]
    dismissed: Annotated[int, "Not stored: forgotten by a person, or expired."]
    tokens: Annotated[int, "Estimated: spent, or in a dry run what is left to ask would cost at most."]


class Unread(TypedDict):
    workspace: str
    path: str
    reason: str


class IngestError(TypedDict):
    code: str
    message: str
    hint: str | None


class IngestResult(IngestCounts):
    dry_run: bool
    complete: bool
    error: Annotated[IngestError | None, "Why it is not complete; what was answered is kept."]
    skipped: list[Unread]
    failed: Annotated[list[Unread], "Pieces that the model could not be asked about."]
    planned: Annotated[list[Fact], "In a dry run, what the answers that are kept would store."]
    took_ms: float


class LastIngest(IngestCounts):
    at: str
    complete: bool
    error: IngestError | None


class IngestStatusResult(TypedDict):
    model: str | None
    scheduled: bool
    facts: int
    superseded: int
    running: bool
    stopping: Annotated[bool, "It ends after the call in hand."]
    progress: IngestCounts | None
    last: LastIngest | None


class ModelUseResult(TypedDict):
    model: str
    provider: Annotated[str, "Who embeds from then on."]
    serving: Annotated[str | None, "The model that is searched by meanwhile."]


ModelRollbackResult = TypedDict(
    "ModelRollbackResult",
    {
        "model": str,
        "fingerprint": str,
        "from": str | None,
        "cancelled": Annotated[bool, "A switch that was under way was given up."],
        "settings": dict[str, Any],
    },
)


class RemovedGeneration(TypedDict):
    model: str
    fingerprint: str


class ModelPruneResult(TypedDict):
    removed: list[RemovedGeneration]
    bytes: int


class EventsSubscribeResult(TypedDict):
    events: list[str]
    queue: Annotated[int, "Events that wait for this client at most."]


class EventsUnsubscribeResult(TypedDict):
    events: Annotated[list[str], "What was subscribed to."]


CancelResult = None
RpcDiscoverResult = Annotated[dict[str, Any], "An OpenRPC document."]
