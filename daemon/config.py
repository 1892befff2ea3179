"""Every setting, its default, its limits and its one sentence of documentation.

The dataclasses are the schema: reading (``config_file``), printing (``config_show``), ``config.example.toml``
and the environment's ``MEMORYD_*`` names all derive from them. A section is documented by its docstring, a
setting by its metadata, and a setting's type is the type of its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INCLUDE = ("MEMORY.md", "memory/**/*.md", "skills/**/*.md")
IGNORE = (".git/**", "**/.*", "**/*~", "**/*.tmp", "**/*.swp", "**/node_modules/**")

EMBEDDING_PROVIDERS = (
    "auto",
    "local",
    "openai",
    "gemini",
    "voyage",
    "mistral",
    "ollama",
    "openai-compatible",
    "none",
)


def about(
    doc: str,
    low: float | None = None,
    high: float | None = None,
    *,
    above: float | None = None,
    choices: tuple[str, ...] = (),
    form: str = "",
) -> Mapping[str, Any]:
    """A setting's documentation and limits, as field metadata.

    ``low`` and ``high`` are themselves allowed, ``above`` is not. ``form`` says what a text stands for:
    "path", "model" (a path if it ends in .gguf), "glob", "paths" (globs with their folders),
    "scope", "variable", "credential", "name", "place" (a path or a URI) or "options" (of a store far away).
    """
    return {"doc": doc, "low": low, "high": high, "above": above, "choices": choices, "form": form}


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder whose memory is served; one block for each. None: the current folder, if it holds a memory.

    Once loaded, the path is absolute and without symlinks, and the name is unique and not empty.
    """

    path: Path = field(metadata=about("The folder, relative to this file; ~ and $VARIABLES are expanded.", form="path"))
    name: str = field(default="", metadata=about("Its name; empty: the folder's own.", form="name"))
    include: tuple[str, ...] = field(
        default=INCLUDE, metadata=about("Files that are indexed, as globs inside the folder.", form="glob")
    )
    ignore: tuple[str, ...] = field(
        default=IGNORE, metadata=about("Files that are passed over although included.", form="glob")
    )
    evergreen: tuple[str, ...] = field(
        default=(), metadata=about("Further files that never decay, whatever their date.", form="glob")
    )
    scopes: tuple[str, ...] = field(
        default=(),
        metadata=about(
            'Who files are for, as "scope = glob", such as "user:* = memory/users/*/**"; a note can say it itself.',
            form="scope",
        ),
    )


@dataclass(frozen=True, slots=True)
class Index:
    """How files become chunks."""

    chunk_tokens: int = field(default=400, metadata=about("Size of a chunk, in tokens.", 128, 8192))
    overlap_tokens: int = field(
        default=80, metadata=about("Tokens repeated from the chunk before; less than half a chunk.", 0, 4096)
    )
    max_file_bytes: int = field(
        default=10_485_760, metadata=about("Larger files are skipped and named in status.", 1024, 2**30)
    )
    settle_ms: int = field(default=200, metadata=about("Quiet milliseconds before a file that grows is read.", 0, 5000))
    max_attempts: int = field(default=5, metadata=about("Failed tries after which a job is parked.", 1, 100))
    nice: int = field(
        default=5,
        metadata=about("How much embedding gives way to other programs, on CPU and disk; 0: not at all.", 0, 19),
    )
    pause_on_battery: bool = field(
        default=False,
        metadata=about("Embed nothing while on battery; what is new is found by its words meanwhile."),
    )
    pause_on_pressure: float = field(
        default=0.0,
        metadata=about(
            "Embed nothing, 5 minutes at most, while programs wait for a CPU this percentage of the time; 0: never.",
            0,
            100,
        ),
    )


@dataclass(frozen=True, slots=True)
class Embedder:
    """What turns text into vectors: a model in memoryd, or a service that notes and queries are sent to."""

    provider: str = field(
        default="auto",
        metadata=about(
            "Who embeds; auto: the local model, else the first service that memoryd was given a key of its own for.",
            choices=EMBEDDING_PROVIDERS,
        ),
    )
    model: str = field(
        default="all-minilm-l6-v2",
        metadata=about(
            'A name from `memoryd model list`, a .gguf file, "hf:org/repo/file.gguf", or what the service calls it.',
            form="model",
        ),
    )
    base_url: str = field(
        default="", metadata=about("The service's address; empty: its own, Ollama's on this machine.")
    )
    api_key_env: str = field(
        default="",
        metadata=about("The variable that holds the key; empty: the service's usual one.", form="variable"),
    )
    api_key_file: str = field(default="", metadata=about("The file that holds the key, instead.", form="path"))
    api_key_credential: str = field(
        default="",
        metadata=about("The service's credential (LoadCredential=) that holds the key, instead.", form="credential"),
    )
    dimension: int = field(
        default=0,
        metadata=about("Numbers of each vector that are kept; 0: all. For models that were trained for it.", 0, 16_384),
    )
    precision: str = field(
        default="int8",
        metadata=about(
            "What a number of a vector is kept in; float32: four times the disk, after int8 all is embedded again.",
            choices=("float32", "int8"),
        ),
    )
    timeout_s: float = field(
        default=30.0, metadata=about("Seconds that a service has for a batch of notes.", above=0, high=600)
    )
    daily_tokens: int = field(
        default=0, metadata=about("Tokens sent to a service a day (UTC), at most; 0: no limit.", 0, 10**12)
    )
    threads: int = field(default=0, metadata=about("CPU threads for embedding; 0: memoryd decides.", 0, 256))
    batch_tokens: int = field(default=512, metadata=about("Tokens embedded in one go.", 128, 65_536))
    idle_unload_minutes: float = field(
        default=15.0,
        metadata=about(
            "Minutes without a query or a job after which a local model gives its memory back; 0: never.", 0, 10_080
        ),
    )
    auto_install: bool = field(default=True, metadata=about("Install a missing model; false: never download."))
    query_prefix: str = field(default="", metadata=about("Put before a query, for models that want it."))
    document_prefix: str = field(default="", metadata=about("Put before a passage, for models that want it."))
    keep_generations_days: float = field(
        default=14.0,
        metadata=about("Days that the model before keeps its vectors, for `memoryd model rollback`.", 0, 3650),
    )


@dataclass(frozen=True, slots=True)
class Llm:
    """The language model for what needs one: [ingest] and [search.hyde]. Unless it is named here, nothing is sent."""

    provider: str = field(
        default="none",
        metadata=about(
            "Where it runs: in memoryd, in Ollama, or behind another HTTP API.",
            choices=("none", "local", "ollama", "openai-compatible"),
        ),
    )
    model: str = field(
        default="",
        metadata=about("The .gguf of an instruction-tuned model, or the name that the API knows it by.", form="model"),
    )
    base_url: str = field(
        default="",
        metadata=about('The API, such as "https://api.openai.com/v1"; for ollama, if empty: "http://127.0.0.1:11434".'),
    )
    api_key_env: str = field(
        default="", metadata=about("The environment variable that holds the API's key.", form="variable")
    )
    api_key_file: str = field(default="", metadata=about("The file that holds the key, instead.", form="path"))
    api_key_credential: str = field(
        default="",
        metadata=about("The service's credential (LoadCredential=) that holds the key, instead.", form="credential"),
    )
    threads: int = field(default=0, metadata=about("CPU threads of a local model; 0: memoryd decides.", 0, 256))


@dataclass(frozen=True, slots=True)
class Weights:
    """What each leg counts in the fusion; 0 turns a leg off."""

    words: float = field(default=1.0, metadata=about("Weight of matching words, stemmed.", 0, 100))
    trigram: float = field(default=0.5, metadata=about("Weight of matching parts of words.", 0, 100))
    vector: float = field(default=1.0, metadata=about("Weight of matching meaning.", 0, 100))


@dataclass(frozen=True, slots=True)
class Decay:
    """How dated notes fade; evergreen ones never do."""

    half_life_days: float = field(
        default=30.0, metadata=about("Age at which a note's decay factor is one half.", above=0, high=36_500)
    )
    strength: float = field(default=0.2, metadata=about("How much age matters: 0 not at all, 1 the full factor.", 0, 1))
    nearly: float = field(
        default=0.75,
        metadata=about(
            "A newer note goes before an older one that says alike things if it has this part of its score; 1: never.",
            0,
            1,
        ),
    )


@dataclass(frozen=True, slots=True)
class NamedDays:
    """Where a query names days ("last Tuesday", "in May 2026"), what was written then comes first."""

    strength: float = field(
        default=0.5, metadata=about("How much it matters: 0 not at all, 1 half as relevant again.", 0, 10)
    )
    half_life_days: float = field(
        default=7.0, metadata=about("Days away from them at which it matters half as much.", above=0, high=36_500)
    )


@dataclass(frozen=True, slots=True)
class Hyde:
    """A hypothetical answer, written by the language model in [llm], is embedded to search by; seconds a query."""

    enabled: bool = field(default=False, metadata=about("For every query that does not say otherwise."))
    mode: str = field(
        default="average",
        metadata=about("The answer together with the query, or in its place.", choices=("average", "replace")),
    )
    timeout_s: float = field(
        default=8.0, metadata=about("Seconds after which the query is searched as it is.", above=0, high=600)
    )
    max_tokens: int = field(default=96, metadata=about("Longest answer, in tokens.", 8, 1024))


@dataclass(frozen=True, slots=True)
class Mmr:
    """Variety: a hit that says what a better one has said comes later. The scores stay."""

    enabled: bool = field(default=False, metadata=about("Whether hits are put in that order."))
    relevance: float = field(
        default=0.7, metadata=about("The lambda: 1 is the order of the scores, 0 looks at novelty alone.", 0, 1)
    )


@dataclass(frozen=True, slots=True)
class Rerank:
    """A second look: a cross-encoder reads the best passages together with the query."""

    enabled: bool = field(default=False, metadata=about("For every query that does not say otherwise."))
    model: str = field(
        default="ms-marco-minilm-l12-v2",
        metadata=about(
            'A reranker from `memoryd model list`, a .gguf or .onnx file, or "hf:org/repo/file.gguf".', form="model"
        ),
    )
    budget_ms: float = field(
        default=400.0, metadata=about("Milliseconds that it may read; a slow CPU reads less.", above=0, high=60_000)
    )
    weight: float = field(
        default=0.275, metadata=about("What its word counts: 0 nothing, 1 more than all legs together.", 0, 1)
    )


@dataclass(frozen=True, slots=True)
class Search:
    """How a query is answered."""

    limit: int = field(default=6, metadata=about("Hits returned unless the caller asks otherwise.", 1, 100))
    min_score: float = field(default=0.05, metadata=about("Hits that score less are left out; 0: none.", 0, 1))
    abstain: float = field(
        default=0.1,
        metadata=about(
            "If even the best candidate is less relevant, the answer is empty and says why; 0: never. In a memory of "
            "more than 80 chunks somewhat more is asked for, half as much again from 320 on, and less in one of fewer "
            "than ten; twice as much of a query with a name that no note has. A query with a min_score of its own is "
            "not held to it.",
            0,
            1,
        ),
    )
    doubt: float = field(
        default=0.2,
        metadata=about(
            "If even the best candidate is less relevant, the answer says that its hits may not answer the question; "
            "0: never.",
            0,
            1,
        ),
    )
    candidates: int = field(
        default=20, metadata=about("Chunks that each leg proposes, or as many as are asked for.", 1, 10_000)
    )
    fusion: str = field(
        default="weighted",
        metadata=about("weighted adds up how well each leg matches, rrf its ranks.", choices=("weighted", "rrf")),
    )
    adaptive: bool = field(default=True, metadata=about("Weigh the legs query by query; false: by the weights alone."))
    concentration: float = field(
        default=0.3,
        metadata=about(
            "Part of a score that is what the best passage of a chunk has of the query by itself; 0: none. "
            "With weighted fusion alone.",
            0,
            1,
        ),
    )
    rrf_k: int = field(
        default=10, metadata=about("The k of reciprocal rank fusion; smaller favours the top ranks.", 1, 1000)
    )
    snippet_chars: int = field(default=700, metadata=about("Longest snippet, in characters.", 20, 100_000))
    weights: Weights = Weights()
    decay: Decay = Decay()
    named_days: NamedDays = NamedDays()
    mmr: Mmr = Mmr()
    hyde: Hyde = Hyde()
    rerank: Rerank = Rerank()


@dataclass(frozen=True, slots=True)
class Sessions:
    """Transcripts of sessions with OpenClaw, Claude Code and Codex, if you want them searched; see docs/sessions.md."""

    enabled: bool = field(default=False, metadata=about("Whether transcripts are indexed; false: none is kept."))
    paths: tuple[str, ...] = field(
        default=(),
        metadata=about(
            'The transcripts, as globs with their folder, such as "~/.claude/projects/**/*.jsonl"; '
            "~ and $VARIABLES are expanded.",
            form="paths",
        ),
    )
    search_by_default: bool = field(
        default=False, metadata=about("Whether queries that name no source see transcripts too.")
    )
    max_turn_chars: int = field(default=8000, metadata=about("What is kept of a turn, in characters.", 200, 1_000_000))


@dataclass(frozen=True, slots=True)
class Ingest:
    """Facts that the language model in [llm] finds in skills and docs; `memoryd ingest` makes them at any time."""

    enabled: bool = field(default=False, metadata=about("Make them by itself too, on schedule."))
    schedule_minutes: float = field(
        default=360.0, metadata=about("Between two runs; only what changed is asked about.", above=0, high=10_080)
    )
    paths: tuple[str, ...] = field(
        default=("skills/**/*.md", "TOOLS.md", "AGENTS.md"),
        metadata=about(
            "Files that are read, as globs inside each workspace; included in the index or not.", form="glob"
        ),
    )
    chunk_chars: int = field(default=800, metadata=about("Characters that are asked about at a time.", 200, 20_000))
    overlap_chars: int = field(
        default=100, metadata=about("Of those, repeated from the piece before; less than half.", 0, 10_000)
    )
    decay: str = field(
        default="durable",
        metadata=about(
            "How long a fact lasts of which the model does not say it; stable is another name for durable.",
            choices=("permanent", "durable", "stable", "normal", "short", "ephemeral"),
        ),
    )
    similarity: float = field(
        default=0.92, metadata=about("Cosine from which two facts say the same; 1: only the same words do.", 0.5, 1)
    )
    max_tokens: int = field(default=512, metadata=about("Longest answer about one piece, in tokens.", 32, 16_384))
    timeout_s: float = field(default=120.0, metadata=about("Seconds that an answer may take.", above=0, high=3600))
    daily_tokens: int = field(
        default=0, metadata=about("Tokens a day at most, as estimated; 0: as many as it takes.", 0, 2**40)
    )


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often the daemon looks after itself."""

    reconcile_minutes: float = field(
        default=10.0,
        metadata=about("Between two comparisons of disk, ledger and vectors.", above=0, high=10_080),
    )
    retry_minutes: float = field(
        default=15.0, metadata=about("Between two looks at the jobs that failed.", above=0, high=10_080)
    )
    maintain_minutes: float = field(
        default=60.0, metadata=about("Between two compactions of the stores, at most.", above=0, high=10_080)
    )
    reread_minutes: float = field(
        default=5.0,
        metadata=about(
            "Between two readings of a few files that seem unchanged: some changes hide.", above=0, high=10_080
        ),
    )
    verify_minutes: float = field(
        default=30.0,
        metadata=about(
            "Between two light proofs that the stores are in step; drift is repaired.", above=0, high=10_080
        ),
    )


@dataclass(frozen=True, slots=True)
class Server:
    """What the socket puts up with."""

    max_request_bytes: int = field(default=1_048_576, metadata=about("Largest request.", 1024, 2**30))
    max_connections: int = field(default=4096, metadata=about("Connections open at once.", 1, 10_000))
    max_in_flight: int = field(default=32, metadata=about("Unanswered requests of one connection.", 1, 1000))
    request_timeout_s: float = field(
        default=30.0,
        metadata=about("Seconds after which a request is answered with an error.", above=0, high=3600),
    )
    arrival_timeout_s: float = field(
        default=30.0,
        metadata=about("Seconds within which a request that has begun must be there whole.", above=0, high=3600),
    )
    idle_timeout_s: float = field(
        default=0.0, metadata=about("Seconds after which a silent connection is closed; 0: never.", 0, 86_400)
    )


@dataclass(frozen=True, slots=True)
class Log:
    """What the daemon says on stderr."""

    level: str = field(
        default="info", metadata=about("Least level shown.", choices=("debug", "info", "warning", "error"))
    )
    format: str = field(
        default="auto",
        metadata=about(
            "auto is console on a terminal, journal where stderr is systemd's, else json.",
            choices=("auto", "console", "json", "journal"),
        ),
    )
    include_text: bool = field(
        default=False, metadata=about("Whether what was asked may stand in the log; else its length does.")
    )


@dataclass(frozen=True, slots=True)
class Locations:
    """Where things are kept."""

    data: str = field(default="", metadata=about("The index; empty: $XDG_DATA_HOME/memoryd.", form="path"))
    cache: str = field(default="", metadata=about("The models; empty: $XDG_CACHE_HOME/memoryd.", form="path"))
    socket: str = field(
        default="", metadata=about("The socket; empty: $XDG_RUNTIME_DIR/memoryd/memoryd.sock.", form="path")
    )


@dataclass(frozen=True, slots=True)
class Store:
    """Where the vectors are kept, if not on this machine; the ledger and your notes stay here. See docs/remote.md."""

    vectors_uri: str = field(
        default="",
        metadata=about(
            'A folder, or a bucket such as "s3://bucket/memory"; empty: vectors, in the data folder.', form="place"
        ),
    )
    storage_options: tuple[str, ...] = field(
        default=(),
        metadata=about(
            'What a bucket needs, as "name = value"; keys as "name = env:VARIABLE", "file:PATH" or "credential:NAME".',
            form="options",
        ),
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The effective settings and where they came from; two are equal if their settings are."""

    workspaces: tuple[Workspace, ...] = ()  # [[workspace]] in the file
    index: Index = Index()
    embedder: Embedder = Embedder()
    llm: Llm = Llm()
    search: Search = Search()
    sessions: Sessions = Sessions()
    ingest: Ingest = Ingest()
    schedule: Schedule = Schedule()
    server: Server = Server()
    log: Log = Log()
    paths: Locations = Locations()
    store: Store = Store()

    file: Path | None = field(default=None, compare=False)  # the file that was read
    origin: Mapping[str, str] = field(default_factory=dict, compare=False)  # by dotted key; absent = default
    notes: tuple[str, ...] = field(default=(), compare=False)  # what a person should know about the choice
