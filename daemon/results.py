"""What each method answers, and what each notification says, as types that the description is generated from.

``<Name>Result`` belongs to the method of ``<Name>Request``, ``<Name>Event`` to the notification ``events.<name>``. What
is said here is held against the answers of a real server by the tests.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

Lines = Annotated[int, "Counted from 1."]


class Limits(TypedDict):
    """What the server takes on; see docs/protocol.md."""

    max_request_bytes: int
    max_batch: int
    max_connections: int
    max_in_flight: Annotated[int, "Unanswered messages of one connection; beyond it the server stops reading."]
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


class Fence(TypedDict):
    """The two lines around the text of notes; the nonce is this answer's alone."""

    nonce: str
    begin: Annotated[str, "What the first line begins with; the origin follows, as JSON."]
    end: Annotated[str, "The whole last line."]


class Degraded(TypedDict):
    """A leg that should have run and did not."""

    leg: str
    reason: str | None
    hint: str | None


class Absence(TypedDict):
    """Why there are no hits."""

    reason: str
    hint: str | None
    best_score: float


class HydeReport(TypedDict):
    """What became of the wish for a hypothetical answer."""

    used: bool
    text: NotRequired[Annotated[str, "The hypothesis, with explain."]]
    reason: NotRequired[str | None]
    hint: NotRequired[str | None]


class Pending(TypedDict):
    """A document that is not wholly searchable yet."""

    workspace: str
    path: str
    phase: Literal["text", "vectors"]


class LineRange(TypedDict):
    start_line: Lines
    end_line: Lines


class LegRank(TypedDict):
    rank: Annotated[int, "Counted from 1."]
    score: Annotated[float, "words, trigram: bm25; vector: cosine of the best passage."]
    share: Annotated[float, "Of what a perfect match would score, 0 to 1."]


class Mmr(TypedDict):
    place: int
    similarity: float
    nearest: str | None


class HitExplanation(TypedDict):
    legs: dict[str, LegRank]
    fused: float
    relevance: float
    decay: float
    age_days: int | None
    mmr: NotRequired[Mmr]


class Origin(TypedDict):
    """Where a fact comes from."""

    workspace: str
    path: str
    start_line: Lines
    end_line: Lines
    citation: Annotated[str, "PATH#LFROM-LTO in that workspace."]


class Hit(TypedDict):
    """A ranked chunk, ready to be cited."""

    workspace: str
    path: Annotated[str, "Relative to the workspace."]
    start_line: Lines
    end_line: Lines
    citation: Annotated[str, "PATH#LFROM-LTO, which get takes."]
    score: Annotated[float, "0 to 1, and the same for every query."]
    snippet: str
    snippet_line: Annotated[int, "The line of the document that the snippet's text begins in."]
    highlights: Annotated[list[list[int]], "[start, end) in the snippet, in code points."]
    best: LineRange
    source: str
    heading: str
    date: Annotated[str | None, "Its day; null: evergreen or undated."]
    scope: str
    id: str
    merged: Annotated[list[str], "Ids of overlapping chunks whose lines are among these."]
    origin: NotRequired[Annotated[Origin, "Of a fact: what it was made of."]]
    superseded: NotRequired[Literal[True]]
    superseded_by: NotRequired[str | None]
    explain: NotRequired[HitExplanation]


class Weight(TypedDict):
    """What a leg counts for this query, and why."""

    prior: float
    noise: float
    best: float
    value: float
    standout: float


class Filters(TypedDict):
    on: dict[str, Any]
    documents: int
    of: int | None


class SearchResult(TypedDict):
    query: str
    results: list[Hit]
    pending: Annotated[list[Pending], "The first of them."]
    pending_count: int
    degraded: Degraded | None
    absence: Absence | None
    hyde: HydeReport | None
    took_ms: float
    fence: NotRequired[Fence]
    timings_ms: NotRequired[dict[str, float]]
    candidates: NotRequired[dict[str, int]]
    weights: NotRequired[dict[str, Weight]]
    lost: NotRequired[dict[str, int]]
    filters: NotRequired[Filters]


class Passage(TypedDict):
    workspace: str
    path: str
    line: Lines
    start_line: int | None
    end_line: int | None
    id: str | None


class Stage(TypedDict):
    """A step on the way into the hits."""

    stage: str
    passed: Annotated[bool | None, "null: the passage did not come so far."]
    detail: str


class Words(TypedDict):
    """What of the query the passage has."""

    has: list[str]
    lacks: list[str]
    ignored: list[str]


class Change(TypedDict):
    setting: str
    value: Any


Remedy = TypedDict(
    "Remedy",
    {"setting": str, "value": Any, "with": list[Change], "command": str, "place": int | None},
)


class WhyNotResult(TypedDict):
    query: str
    passage: Passage
    verdict: str
    explanation: str
    place: int | None
    stages: list[Stage]
    legs: dict[str, LegRank | None]
    words: Words | None
    remedies: list[Remedy]
    hint: str | None
    took_ms: float


class GetResult(TypedDict):
    workspace: str
    path: str
    start_line: Lines
    end_line: Lines
    lines: Annotated[int, "Of the whole document."]
    text: str
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


# -- notifications ------------------------------------------------------------------------------------------------


class Told(TypedDict):
    seq: Annotated[int, "Counts every event of the daemon: a gap is what was not subscribed to, or dropped."]
    at: Annotated[str, "When, in UTC."]


class DocumentEvent(Told):
    """A document is searchable by its words (indexed), by its meaning too (embedded), passed over, or gone."""

    change: Literal["indexed", "embedded", "skipped", "forgotten"]
    workspace: str
    path: str


class ProgressEvent(BriefStatus, Told):
    """How far indexing is: once after subscribing, and when it changes."""


class HealthEvent(Health, Told):
    """How healthy the daemon is: once after subscribing, and when it changes."""


class DroppedEvent(TypedDict):
    """The client did not keep up: so many events before the next one are lost."""

    count: int
