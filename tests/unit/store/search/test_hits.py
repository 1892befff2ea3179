"""From candidates to hits, over a real ledger."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from memoryd.store.errors import StoreUnavailable
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Candidate, Hit, LegRank, Lines, Lost
from memoryd.store.search.hits import select_hits
from memoryd.store.search.mmr import WINDOW
from memoryd.store.search.request import Mmr, SearchQuery, SearchSettings
from tests.support.documents import make_document
from tests.support.ledger import Ledger
from tests.support.memory_vectors import MemoryVectors

WORDS = {"words": LegRank(1, 1.0)}


def select(
    ledger: Ledger,
    candidates: list[Candidate],
    text: str = "goat",
    settings: SearchSettings | None = None,
    vectors: VectorIndex | None = None,
    reach: int = 6,
    **options: Any,
) -> tuple[list[Hit], list[Lost]]:
    query = replace(SearchQuery(text, date(2026, 11, 15)), **options)
    with ledger.database.read() as sql:
        return select_hits(sql, candidates, query, settings or SearchSettings(), vectors, reach=reach)


def ranked(ledger: Ledger, *texts: str, legs: dict[str, LegRank] | None = None) -> list[Candidate]:
    """Candidates for the chunks with these texts, the first the best."""
    chunks = ledger.chunk_ids()
    return [
        Candidate(chunks[text], legs or WORDS, fused=1, relevance=1 - place / 100) for place, text in enumerate(texts)
    ]


def reasons(ledger: Ledger, lost: list[Lost]) -> dict[str, tuple[str, str | None]]:
    """Text of a lost chunk -> at which stage, and the text of the one that stands for it."""
    texts = {chunk: text for text, chunk in ledger.chunk_ids().items()}
    return {texts[each.candidate.chunk_id]: (each.stage, texts[each.by] if each.by else None) for each in lost}


def put_long_note(ledger: Ledger) -> list[str]:
    """A note of three chunks, each sharing a line with the next; returns their texts."""
    lines = ["one\n", "two goats\n", "\nthree\n", "four\n", "five\n", "six\n", "seven\n"]
    ledger.put(make_document("long.md", *lines, chunks=[(0, 2), (2, 4), (4, 6)], heading="Long", first_line=11))
    return ["".join(lines[0:3]), "".join(lines[2:5]), "".join(lines[4:7])]


# -- neighbours -----------------------------------------------------------------------------------------------


def test_neighbours_are_one_hit_with_the_lines_of_both(ledger: Ledger) -> None:
    first, second, _ = put_long_note(ledger)
    ledger.put(make_document("other.md", "other\n"))
    hits, lost = select(ledger, ranked(ledger, second, first, "other\n"), limit=2)
    assert [(hit.path, hit.start_line, hit.end_line) for hit in hits] == [("long.md", 11, 16), ("other.md", 1, 1)]
    assert reasons(ledger, lost) == {first: ("neighbour", second)}
    alone, _ = select(ledger, ranked(ledger, second))
    assert (hits[0].id, hits[0].score, hits[0].heading) == (alone[0].id, 1.0, "Long")
    assert (alone[0].start_line, alone[0].end_line, alone[0].merged) == (13, 16, ())
    assert hits[0].merged == (select(ledger, ranked(ledger, first))[0][0].id,)
    assert hits[0].citation == "long.md#L11-L16"


def test_hit_of_two_shows_the_best_passage_of_the_better_one(ledger: Ledger) -> None:
    first, second, _ = put_long_note(ledger)
    hits, _ = select(ledger, ranked(ledger, second, first), "goats four")
    assert hits[0].best == Lines(15, 15)
    assert hits[0].snippet == "one\ntwo goats\n\nthree\nfour\nfive"
    assert hits[0].snippet_line == 11
    assert [hits[0].snippet[start:end] for start, end in hits[0].highlights] == ["goats", "four"]


def test_run_of_three_is_two_hits(ledger: Ledger) -> None:
    first, second, third = put_long_note(ledger)
    hits, lost = select(ledger, ranked(ledger, first, second, third))
    assert [(hit.start_line, hit.end_line) for hit in hits] == [(11, 16), (16, 18)]
    assert reasons(ledger, lost) == {second: ("neighbour", first)}


def test_neighbours_stay_apart_where_it_is_asked_for(ledger: Ledger) -> None:
    hits, lost = select(ledger, ranked(ledger, *put_long_note(ledger)), reach=0)
    assert (len(hits), lost) == (3, [])


def test_neighbour_below_min_score_is_not_taken_in(ledger: Ledger) -> None:
    first, second, _ = put_long_note(ledger)
    hits, lost = select(ledger, ranked(ledger, first, second), min_score=0.995)
    assert [(hit.start_line, hit.end_line, hit.merged) for hit in hits] == [(11, 14, ())]
    assert reasons(ledger, lost) == {second: ("min_score", None)}


# -- what is lost, and the limit ------------------------------------------------------------------------------


def put_many(ledger: Ledger, count: int = 120) -> list[str]:
    """Chunks of which some say the same and some overlap; returns their texts in an order of no meaning."""
    for number in range(count // 6):
        lines = [f"note {number} line {line}\n" for line in range(5)]
        ledger.put(make_document(f"{number}.md", *lines, chunks=[(0, 1), (1, 2), (2, 3), (3, 4)]))
        ledger.put(make_document(f"{number}-said.md", f"said {number % 7} twice\n"))
        ledger.put(make_document(f"{number}-again.md", f"Said {number % 5} Twice\n"))
    with ledger.database.read() as sql:
        texts = [row[0] for row in sql.execute("SELECT text FROM chunk_texts ORDER BY id")]
    np.random.default_rng(3).shuffle(texts)
    return texts


def all_chunks(ledger: Ledger) -> list[Candidate]:
    put_many(ledger)
    with ledger.database.read() as sql:
        chunks = [row[0] for row in sql.execute("SELECT id FROM chunks ORDER BY id")]
    np.random.default_rng(3).shuffle(chunks)
    # Some scores are equal, and some candidates come by meaning alone.
    legs = [WORDS, {"vector": LegRank(1, 0.5)}]
    return [
        Candidate(chunk, legs[place % 2], fused=1, relevance=1 - (place // 3) / 100)
        for place, chunk in enumerate(chunks)
    ]


@pytest.mark.parametrize("mmr", [Mmr(), Mmr(enabled=True), Mmr(enabled=True, relevance=0.1)])
def test_short_answer_is_the_beginning_of_a_long_one(ledger: Ledger, mmr: Mmr) -> None:
    candidates = all_chunks(ledger)
    settings = SearchSettings(mmr=mmr)
    whole, _ = select(ledger, candidates, settings=settings, limit=100)
    assert len(whole) > 50
    assert any(hit.merged for hit in whole)
    for limit in (0, 1, 2, 3, 5, 6, 10, 20, 49, 50, 51, 70):
        assert select(ledger, candidates, settings=settings, limit=limit)[0] == whole[:limit]


@pytest.mark.parametrize("limit", [0, 1, 6, 30, 100])
def test_every_candidate_is_a_hit_or_lost_for_a_reason(ledger: Ledger, limit: int) -> None:
    candidates = all_chunks(ledger)
    hits, lost = select(ledger, candidates, limit=limit, min_score=0.7)
    found = [hit.candidate.chunk_id for hit in hits] + [each.candidate.chunk_id for each in lost]
    assert sorted(found) == sorted(candidate.chunk_id for candidate in candidates)
    assert all((each.stage == "min_score") == (each.candidate.score < 0.7) for each in lost)
    assert all((each.by is not None) == (each.stage in ("duplicate", "neighbour")) for each in lost)
    assert [each.candidate.score for each in lost] == sorted((each.candidate.score for each in lost), reverse=True)


def test_place_of_a_duplicate_goes_to_the_next(ledger: Ledger) -> None:
    ledger.put(*(make_document(f"{name}.md", f"{text}\n") for name, text in ("aA", "ba", "cx", "dy")))
    hits, lost = select(ledger, ranked(ledger, "A\n", "a\n", "x\n", "y\n"), limit=2)
    assert [hit.path for hit in hits] == ["a.md", "c.md"]
    assert reasons(ledger, lost) == {"a\n": ("duplicate", "A\n"), "y\n": ("limit", None)}


def test_of_equal_duplicates_the_one_with_the_words_is_the_hit(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "the goat\n"), make_document("b.md", "The Goat\n"))
    near, worded = ranked(ledger, "the goat\n", "The Goat\n")
    near = near._replace(legs={"vector": LegRank(1, 0.5, passage=0)}, relevance=0.5)
    hits, lost = select(ledger, [near, worded._replace(relevance=0.5)])
    assert [hit.path for hit in hits] == ["b.md"]
    assert reasons(ledger, lost) == {"the goat\n": ("duplicate", "The Goat\n")}


def test_no_two_hits_are_duplicates_or_neighbours_that_could_be_one(ledger: Ledger) -> None:
    hits, _ = select(ledger, all_chunks(ledger), limit=100)
    assert len({hit.snippet.casefold() for hit in hits}) == len(hits)
    for first, second in pairwise(hits):
        apart = first.path != second.path or first.end_line < second.start_line or second.end_line < first.start_line
        assert apart or first.merged or second.merged


# -- MMR ------------------------------------------------------------------------------------------------------


class Failing(MemoryVectors):
    def vectors(self, ids: Collection[int]) -> dict[int, Vectors]:
        raise StoreUnavailable("the disk is away")


TWINS = ("a goat on the meadow\n", "a goat upon the meadow\n", "trains run late\n")
DIRECTIONS = ([1, 0], [0.99, 0.14], [0, 1])


def put_twins(ledger: Ledger, index: VectorIndex) -> list[Candidate]:
    """Two notes that say the same in other words, and a third."""
    ledger.put(*(make_document(f"{number}.md", text) for number, text in enumerate(TWINS)))
    ledger.generation(dimension=2)
    ledger.embed(index, {text: np.array(way, np.float32) for text, way in zip(TWINS, DIRECTIONS, strict=True)})
    return ranked(ledger, *TWINS, legs={"vector": LegRank(1, 0.5, passage=0)})


@pytest.mark.parametrize("index", [MemoryVectors(2), Failing(2), None])
def test_twin_comes_after_what_is_new(ledger: Ledger, index: VectorIndex | None) -> None:
    """By the vectors; by the words where they fail or the leg does not run."""
    candidates = put_twins(ledger, index or MemoryVectors(2))
    plain, _ = select(ledger, candidates, vectors=index)
    assert [hit.path for hit in plain] == ["0.md", "1.md", "2.md"]
    varied, _ = select(ledger, candidates, settings=SearchSettings(mmr=Mmr(enabled=True)), vectors=index)
    assert [hit.path for hit in varied] == ["0.md", "2.md", "1.md"]
    assert [hit.score for hit in varied] == [plain[0].score, plain[2].score, plain[1].score]
    assert [hit.nearest for hit in varied] == [None, plain[0].id, plain[0].id]
    step = varied[2].candidate.mmr
    assert step is not None
    assert (step.place, step.nearest) == (2, candidates[0].chunk_id)
    assert step.similarity == pytest.approx(0.99 if type(index) is MemoryVectors else 4 / 6, abs=0.01)


def test_mmr_lifts_nothing_from_beyond_the_best(ledger: Ledger) -> None:
    texts = [f"a note on goats, {number}\n" for number in range(WINDOW)] + ["zeppelin\n"]
    ledger.put(*(make_document(f"{number}.md", text) for number, text in enumerate(texts)))
    settings = SearchSettings(mmr=Mmr(enabled=True, relevance=0.1))
    assert select(ledger, ranked(ledger, *texts), settings=settings, limit=100)[0][WINDOW].path == f"{WINDOW}.md"
    assert select(ledger, ranked(ledger, *texts[1:]), settings=settings, limit=100)[0][1].path == f"{WINDOW}.md"


def test_lambda_of_1_is_the_same_answer(ledger: Ledger) -> None:
    candidates = all_chunks(ledger)
    plain = select(ledger, candidates, limit=100)
    assert select(ledger, candidates, settings=SearchSettings(mmr=Mmr(enabled=True, relevance=1)), limit=100) == plain


def test_lost_twin_says_whose_twin_it_is(ledger: Ledger) -> None:
    index = MemoryVectors(2)
    candidates = put_twins(ledger, index)
    _, lost = select(ledger, candidates, settings=SearchSettings(mmr=Mmr(enabled=True)), vectors=index, limit=2)
    assert reasons(ledger, lost) == {TWINS[1]: ("limit", None)}
    step = lost[0].candidate.mmr
    assert step is not None
    assert (step.place, step.nearest) == (2, candidates[0].chunk_id)


def test_chunk_that_came_by_words_is_compared_by_what_its_passages_have_in_common(ledger: Ledger) -> None:
    index = MemoryVectors(2)
    ledger.put(make_document("a.md", "x\n", "y\n", chunks=[(0, 1)]), make_document("b.md", "z\n"))
    ledger.generation(dimension=2)
    directions = {"x\n": [1, 0], "y\n": [0, 1], "z\n": [0, 1]}
    ledger.embed(index, {text: np.array(way, np.float32) for text, way in directions.items()})
    hits, _ = select(
        ledger, ranked(ledger, "x\ny\n", "z\n"), settings=SearchSettings(mmr=Mmr(enabled=True)), vectors=index
    )
    assert hits[1].candidate.mmr is not None
    assert hits[1].candidate.mmr.similarity == pytest.approx(0.7071, abs=1e-3)


# -- what is shown --------------------------------------------------------------------------------------------


def test_best_lines_are_those_of_the_file_without_blank_ones(ledger: Ledger) -> None:
    lines = ["# Title\n\n", "\nnothing here\n\n", "\n\nThe goat,\nagain.\n\n"]
    ledger.put(make_document("a.md", *lines, chunks=[(0, 2)]))
    text = "".join(lines)
    (hit,), _ = select(ledger, ranked(ledger, text))
    shown = text.split("\n")[hit.best.start - 1 : hit.best.end]
    assert shown == ["The goat,", "again."]


def test_snippet_and_its_line_are_the_file_s_own(ledger: Ledger) -> None:
    lines = [f"line {number} of the note\n" for number in range(1, 60)]
    lines[39] = "the goat\n"
    ledger.put(make_document("a.md", *lines, chunks=[(0, 58)]))
    text = "".join(lines)
    (hit,), _ = select(ledger, ranked(ledger, text), settings=SearchSettings(snippet_chars=200))
    shown = hit.snippet.strip("…").split("\n")
    assert text.split("\n")[hit.snippet_line - 1 :][: len(shown)] == shown
    assert hit.best == Lines(40, 40)
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["goat"]
