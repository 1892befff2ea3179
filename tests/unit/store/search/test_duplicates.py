from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.answer import Candidate, LegRank, Lost
from memoryd.store.search.duplicates import drop_duplicates, put_words_first


def candidate(chunk: int, score: float, leg: str = "words") -> Candidate:
    return Candidate(chunk, {leg: LegRank(1, 1.0)}, fused=score, relevance=score)


def test_same_text_but_for_case_and_space_around_it_stays_once_the_better_one() -> None:
    first, second, third = candidate(1, 0.9), candidate(2, 0.8), candidate(3, 0.7)
    kept, lost = drop_duplicates([first, second, third], {1: "Straße\n", 2: "other", 3: "\nSTRASSE"})
    assert kept == [first, second]
    assert lost == [Lost(third, "duplicate", 1)]


def test_of_equals_those_with_the_words_come_first() -> None:
    near, between, worded = candidate(1, 0.9, "vector"), candidate(2, 0.9), candidate(3, 0.9, "trigram")
    assert put_words_first([near, between, worded]) == [between, worded, near]


def test_words_do_not_win_over_a_better_score() -> None:
    near, worded = candidate(1, 0.9, "vector"), candidate(2, 0.8)
    assert put_words_first([worded, near]) == [near, worded]


def test_third_of_three_is_lost_to_the_one_that_stays() -> None:
    group = [candidate(chunk, score) for chunk, score in ((1, 0.9), (2, 0.8), (3, 0.7))]
    kept, lost = drop_duplicates(group, dict.fromkeys((1, 2, 3), "same"))
    assert kept == group[:1]
    assert [(each.candidate.chunk_id, each.by) for each in lost] == [(2, 1), (3, 1)]


@given(st.lists(st.text("aAßẞsS \nİi", max_size=5), max_size=8))
def test_texts_are_the_same_if_nothing_but_case_and_space_around_them_differs(texts: list[str]) -> None:
    candidates = [candidate(chunk, 0.5) for chunk in range(len(texts))]
    kept, lost = drop_duplicates(candidates, dict(enumerate(texts)))
    first: dict[str, int] = {}
    for chunk, text in enumerate(texts):
        first.setdefault(text.casefold().strip(), chunk)
    assert [each.chunk_id for each in kept] == list(first.values())
    assert all(first[texts[each.candidate.chunk_id].casefold().strip()] == each.by for each in lost)
