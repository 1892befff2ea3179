from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.answer import BestPassage, Candidate, Weight
from memoryd.store.search.chunk_rows import ChunkRow, PassageRow
from memoryd.store.search.concentration import concentrate, find_best_passages, measure_nearness, weigh_passages
from memoryd.store.search.neighbours import Span


def row(*texts: str, first: int = 0) -> ChunkRow:
    """A chunk of passages whose ids are their ordinals."""
    rows = {ordinal: PassageRow(ordinal, text, 1) for ordinal, text in enumerate(texts, start=first)}
    span = Span(1, first, first + len(texts) - 1)
    return ChunkRow("k", span, "", 1, 2, "w", "p", "memory", None, "global", None, rows)


def weight(value: float) -> Weight:
    return Weight(prior=value, noise=0.0, best=1.0, value=value)


BOTH = {"words": weight(1.0), "trigram": weight(0.5), "vector": weight(1.0)}
GOAT = {"goat": 1.0, "fence": 1.0}


def order(candidates: Sequence[Candidate]) -> list[int]:
    return [candidate.chunk_id for candidate in candidates]


def best_passages(
    rows: Mapping[int, ChunkRow],
    words: Mapping[str, float],
    nearness: Mapping[int, float],
    weights: Mapping[str, Weight],
    unknown: Set[int] = frozenset(),
) -> dict[int, BestPassage]:
    """Each chunk by itself: the passages of these have the same ids."""
    best: dict[int, BestPassage] = {}
    for chunk, each in rows.items():
        has = weigh_passages({chunk: each}, words).has
        best |= find_best_passages({chunk: each}, has, nearness, weights, unknown)
    return best


# -- the best passage ---------------------------------------------------------------------------------------------


def test_passage_with_all_of_the_query_is_worth_more_than_passages_with_all_of_it_together() -> None:
    rows = {1: row("the goat sleeps", "a new fence"), 2: row("nothing here", "the goat broke the fence")}
    best = best_passages(rows, GOAT, {}, BOTH)
    assert best == {1: BestPassage(0.5, 0), 2: BestPassage(1.0, 1)}


def test_what_a_file_is_called_is_said_by_each_of_its_passages() -> None:
    named = row("it sleeps", "it eats")._replace(path="memory/goat.md")
    best = best_passages({1: named, 2: row("the goat sleeps")}, GOAT, {}, BOTH)
    assert best == {1: BestPassage(0.5, 0), 2: BestPassage(0.5, 0)}


def test_words_and_meaning_count_where_they_stand_together() -> None:
    """One passage has the words and another is near: neither is as good as one that has half of both."""
    apart = best_passages({1: row("the goat broke the fence", "livestock")}, GOAT, {0: 0.0, 1: 0.8}, BOTH)
    together = best_passages({1: row("the goat", "the goat ran off")}, GOAT, {0: 0.2, 1: 0.8}, BOTH)
    assert apart[1] == BestPassage(0.5, 0)
    assert together[1] == BestPassage(pytest.approx(0.65), 1)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("indexing", "It was INDEXED twice."),
        ("stories", "one story"),
        ("café", "the cafe in Rue Monge"),
        ("snake_case", "def snake_case(): ..."),
        ("胶圈", "更换胶圈之后"),
        ("свёклой", "борщ со свёклой"),
        ("नमस्ते", "उसने कहा: नमस्ते"),
    ],
)
def test_word_is_found_as_the_word_index_finds_it(word: str, text: str) -> None:
    assert best_passages({1: row(text)}, {word: 1.0}, {}, BOTH)[1].share == 1.0


@pytest.mark.parametrize(("word", "text"), [("art", "an article"), ("goat", "scapegoat"), ("2026", "12026")])
def test_part_of_another_word_is_not_the_word(word: str, text: str) -> None:
    assert best_passages({1: row(text)}, {word: 1.0}, {}, BOTH)[1].share == 0.0


def test_rare_word_weighs_more_and_one_that_is_nowhere_is_missed_by_all() -> None:
    best = best_passages({1: row("a goat"), 2: row("a fence")}, {"goat": 3.0, "fence": 1.0, "moon": 4.0}, {}, BOTH)
    assert (best[1].share, best[2].share) == (0.375, 0.125)


def test_chunk_whose_vectors_are_late_is_judged_by_its_words_alone() -> None:
    rows = {1: row("the goat"), 2: row("the goat", first=5)}
    best = best_passages(rows, GOAT, {0: 0.1}, BOTH, unknown={2})
    assert best[1].share == pytest.approx(0.3)
    assert best[2].share == 0.5


def test_of_equal_passages_the_first_is_the_best() -> None:
    assert best_passages({1: row("goat", "goat", first=4)}, GOAT, {}, BOTH)[1].ordinal == 4


def test_query_without_words_or_without_their_leg_has_no_best_passages() -> None:
    assert best_passages({1: row("goat")}, {}, {0: 1.0}, BOTH) == {}
    assert best_passages({1: row("goat")}, GOAT, {0: 1.0}, {"vector": weight(1.0)}) == {}


# -- nearness -----------------------------------------------------------------------------------------------------


def test_nearness_is_a_share_from_chance_to_identity() -> None:
    cosines = {0: 1.0, 1: 0.6, 2: -1.0, 7: 0.9}
    near = measure_nearness({1: row("a", "b", "c", "not embedded")}, cosines, floor=0.2)
    assert near == {0: pytest.approx(1.0), 1: pytest.approx(0.5), 2: 0.0}


# -- the order ----------------------------------------------------------------------------------------------------


def test_candidate_with_the_better_passage_goes_first() -> None:
    candidates = [Candidate(1, {}, 0.5), Candidate(2, {}, 0.45), Candidate(3, {}, 0.1)]
    best = {1: BestPassage(0.3, 0), 2: BestPassage(0.6, 0)}
    judged = concentrate(candidates, best, 0.3)
    assert order(judged) == [2, 1, 3]
    assert [candidate.fused for candidate in judged] == pytest.approx([0.495, 0.44, 0.088])
    assert [candidate.best for candidate in judged] == [BestPassage(0.6, 0, 0.3), BestPassage(0.3, 0, 0.3), None]


SHARES = st.floats(0.001, 1)


@given(st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=20), st.integers(1, 8), st.floats(0, 1))
def test_who_was_read_stays_before_who_was_not(shares: list[tuple[float, float]], read: int, part: float) -> None:
    fused = sorted((share for share, _ in shares), reverse=True)
    candidates = [Candidate(chunk, {}, share) for chunk, share in enumerate(fused)]
    best = {chunk: BestPassage(shares[chunk][1], 0) for chunk in range(min(read, len(shares)))}
    judged = concentrate(candidates, best, part)
    assert set(order(judged)[: len(best)]) == set(best) or judged[len(best) - 1].fused == pytest.approx(
        judged[len(best)].fused
    )
    assert sorted(order(judged)) == sorted(order(candidates))
    assert all(0 <= candidate.fused <= 1 for candidate in judged)
    assert [c.fused for c in judged] == sorted((c.fused for c in judged), reverse=True)


def test_without_best_passages_everything_stays() -> None:
    candidates = [Candidate(1, {}, 0.5), Candidate(2, {}, 0.45)]
    assert concentrate(candidates, {}, 0.3) == candidates
