"""One passage and one query: the questions that can be asked of the ledger and of the pipeline about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from memoryd.store.database import Database
from memoryd.store.scope import seen_from
from memoryd.store.search.answer import Answer, Candidate
from memoryd.store.search.chunk_rows import ChunkRow, read_chunks
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.superseded import find_superseded
from memoryd.store.search.visibility import hidden_by
from memoryd.store.search.why_not.changes import Changes, apply_changes
from memoryd.store.search.why_not.spot import Spot, locate
from memoryd.store.search.why_not.target import SharedWords, Target, count_missing_vectors, share_words, telling_words

Ask = Callable[[SearchQuery, SearchSettings], Answer]  # the pipeline

MOST_HITS = 100  # what a query may ask for
MOST_CANDIDATES = 10_000  # what a leg may be set to bring


class Remembered:
    """The pipeline, asked the same thing once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._answers: list[tuple[SearchQuery, SearchSettings, Answer]] = []

    def __call__(self, query: SearchQuery, settings: SearchSettings) -> Answer:
        for before, by, answer in self._answers:
            if before == query and by == settings:
                return answer
        answer = self._ask(query, settings)
        self._answers.append((query, settings, answer))
        return answer


@dataclass(frozen=True, slots=True)
class Case:
    target: Target
    query: SearchQuery
    settings: SearchSettings
    ask: Remembered
    database: Database

    @property
    def limit(self) -> int:
        return self.settings.limit_of(self.query)

    @property
    def min_score(self) -> float:
        return self.settings.min_score_of(self.query)

    # -- asked of the pipeline ----------------------------------------------------------------------------

    def changed(self, changes: Changes) -> Case:
        """The same passage, asked about otherwise."""
        query, settings = apply_changes(self.query, self.settings, changes)
        return replace(self, query=query, settings=settings)

    def answer(self) -> Answer:
        return self.ask(self.query, self.settings)

    def spot(self) -> Spot:
        return locate(self.answer(), self.target)

    def widened(self) -> Case:
        """With as many hits as may be asked for."""
        return replace(self, query=replace(self.query, limit=MOST_HITS))

    def deepened(self) -> Case:
        """With every chunk a candidate, as far as a leg can be made to bring them."""
        with self.database.read() as sql:
            # A leg asks for a few passages a chunk: with as many chunks as there are of both, none is left out.
            (rows,) = sql.execute("SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM passages)").fetchone()
        enough = min(MOST_CANDIDATES, max(rows, self.settings.candidates))
        query = replace(self.query, limit=MOST_HITS, min_score=0.0)
        return replace(self, query=query, settings=replace(self.settings, candidates=enough))

    def candidates(self) -> list[Candidate]:
        answer = self.answer()
        return [*(hit.candidate for hit in answer.hits), *(lost.candidate for lost in answer.lost)]

    # -- asked of the ledger ------------------------------------------------------------------------------

    def is_anothers(self) -> bool:
        """Whether the note is one that the query's scope must learn nothing of."""
        return self.query.scope is not None and self.target.scope not in seen_from(self.query.scope)

    def filters(self) -> list[str]:
        """The query's filters that hide the passage; none if they leave one of its chunks."""
        with self.database.read() as sql:
            hidden = [hidden_by(sql, self.query, self.target.document, chunk.id) for chunk in self.target.chunks]
        return min(hidden, key=len, default=[])

    def excluding(self) -> tuple[str, ...]:
        """Of what is excluded, what hides the passage."""
        with self.database.read() as sql:
            return tuple(
                item
                for item in self.query.exclude
                for alone in (replace(self.query, exclude=(item,)),)
                if any("exclude" in hidden_by(sql, alone, self.target.document, each.id) for each in self.target.chunks)
            )

    def superseded_by(self) -> str | None:
        with self.database.read() as sql:
            return find_superseded(sql, self.query).get(self.target.document)

    def missing_vectors(self) -> int:
        with self.database.read() as sql:
            return count_missing_vectors(sql, [chunk.id for chunk in self.target.chunks])

    def shared_words(self) -> SharedWords:
        with self.database.read() as sql:
            return share_words(sql, [chunk.id for chunk in self.target.chunks], self.query.text)

    def telling_words(self, count: int) -> list[str]:
        with self.database.read() as sql:
            return telling_words(sql, self.target, count)

    def chunk_row(self, chunk: int) -> ChunkRow:
        with self.database.read() as sql:
            return read_chunks(sql, [chunk])[chunk]

    def citation(self, chunk: int) -> str:
        row = self.chunk_row(chunk)
        return f"{row.path}#L{row.start_line}-L{row.end_line}"
