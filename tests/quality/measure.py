"""The quality set asked through the real pipeline, and how good the answers are, by type of question."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Embedder, Workspace
from memoryd.daemon.engine import Engine
from memoryd.daemon.search_methods import search_settings
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from memoryd.store.search.metrics import Span, score_query
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import SearchQuery, SearchSettings
from tests.quality.queries import FAR, WORKSPACE, Query
from tests.support.engine import Memory
from tests.support.waiting import eventually

DEPTH = 20  # hits asked for: deep enough to see where a miss ended up
CUT = 6  # hits that an agent reads
# Nine chunks at most: too few to measure noise.
FEW = {
    "English": (
        "memory/2026-07-22.md",
        "memory/api-conventions.md",
        "memory/deployment.md",
        "memory/health.md",
        "memory/kids.md",
    ),
    "eastern": (
        "memory/kanazawa.md",
        "memory/kimchi.md",
        "memory/中餐菜谱.md",
        "memory/味噌づくり.md",
        "memory/제주여행.md",
    ),
}
PATIENCE_S = 240.0  # a busy machine is slow, not wrong


@dataclass(frozen=True, slots=True)
class Outcome:
    query: Query
    hits: tuple[Span, ...]
    scores: tuple[float, ...]
    doubted: bool
    missing: tuple[str, ...]

    @property
    def is_warned(self) -> bool:
        """Whether who asked was told that this may be no answer: by none, or by what the answer says of itself."""
        return self.is_silent or self.doubted or bool(self.missing)

    @property
    def rank(self) -> int | None:
        """The place of the first hit that holds an answer."""
        return self._first(self.query.gold)

    @property
    def found(self) -> bool:
        return self.rank is not None and self.rank <= CUT

    @property
    def current(self) -> bool:
        """Whether what is true is found, and comes before what was true once."""
        older = self._first(self.query.older)
        return self.rank is not None and self.found and (older is None or self.rank < older)

    @property
    def is_silent(self) -> bool:
        return not self.hits

    @property
    def best_score(self) -> float:
        return max(self.scores, default=0.0)

    def measures(self) -> dict[str, float]:
        return score_query(self.query.gold, self.hits)

    def _first(self, spans: Sequence[Span]) -> int | None:
        places = (rank for rank, hit in enumerate(self.hits, 1) if any(hit.overlaps(span) for span in spans))
        return next(places, None)


def quality_memory(folder: Path, models_dir: Path, workspace: Path = WORKSPACE) -> Memory:
    """A workspace, the quality set's, with the default model and every setting at its default."""
    memory = Memory(folder)
    memory.configure(workspaces=(Workspace(workspace, "notes"),), embedder=Embedder(model=DEFAULT_MODEL))
    memory.load = embedder_loader(memory.config, models_dir)  # type: ignore[assignment]
    return memory


@contextmanager
def indexed(memory: Memory) -> Iterator[Engine]:
    """The engine once it has embedded the whole workspace, which is the work of a dozen quiet seconds."""
    with memory.running() as engine:
        eventually(lambda: engine.is_current() and engine.semantics.settled(), within=PATIENCE_S, what="all is indexed")
        yield engine


def few_notes(folder: Path, names: Sequence[str]) -> Path:
    """The workspace of somebody who has just begun."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(WORKSPACE / name, folder / name)
    return folder


def of_few_notes(queries: Sequence[Query], names: Sequence[str]) -> list[Query]:
    """What these few notes answer, and what has nothing to do with any."""
    return [
        query
        for query in queries
        if query.type == FAR or (query.gold and all(span.path in names for span in query.gold))
    ]


def ask(engine: Engine, queries: Sequence[Query], settings: SearchSettings | None = None) -> list[Outcome]:
    """The outcome of each query; without settings, as the engine is configured."""
    chosen = settings or search_settings(engine.config.search)
    outcomes = []
    for query in queries:
        asked = SearchQuery(query.text, query.now, limit=DEPTH)
        answer = search(asked, chosen, engine.database, engine.semantics.now(), lambda: [])
        assert answer.degraded is None, answer.degraded
        hits = tuple(Span(hit.path, hit.start_line, hit.end_line) for hit in answer.hits)
        scores = tuple(hit.score for hit in answer.hits)
        outcomes.append(Outcome(query, hits, scores, answer.doubt is not None, answer.missing))
    return outcomes


def answerable(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.query.gold]


def of_type(outcomes: Sequence[Outcome], kind: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.query.type == kind]


def share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def separation(outcomes: Sequence[Outcome], kind: str) -> float:
    """How surely the best score tells an answer from noise: the chance that a question with an answer scores higher
    than one of this type, which has none (the area under the ROC curve; 0.5 tells nothing)."""
    known = [outcome.best_score for outcome in answerable(outcomes)]
    absent = [outcome.best_score for outcome in of_type(outcomes, kind)]
    wins = sum(1.0 if high > low else 0.5 if high == low else 0.0 for high in known for low in absent)
    return wins / (len(known) * len(absent))


def describe_misses(outcomes: Sequence[Outcome]) -> str:
    """What was asked, where the answer is, and what came instead."""
    lines = []
    for outcome in outcomes:
        query = outcome.query
        lines.append(f"{query.id}: {query.text!r} (rank of the answer: {outcome.rank})")
        lines += [f"    answer   {_place(span)}" for span in query.gold]
        lines += [f"    before   {_place(span)}" for span in query.older]
        lines += [
            f"    hit {rank}    {_place(hit)}  {score:.3f}"
            for rank, (hit, score) in enumerate(zip(outcome.hits[:CUT], outcome.scores, strict=False), 1)
        ]
    return "\n".join(lines)


def _place(span: Span) -> str:
    return f"{span.path}#L{span.start_line}-L{span.end_line}"
