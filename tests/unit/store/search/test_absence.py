from __future__ import annotations

import pytest

from memoryd.store.search.absence import as_typed, explain_absence, explain_doubt, is_absent, least_relevance
from memoryd.store.search.answer import Candidate, Hit, Lines, Lost, RerankStep, Stage, Weight
from memoryd.store.search.noise import Noise


def found(relevance: float, decay: float = 1.0) -> Hit:
    candidate = Candidate(1, {}, relevance, relevance=relevance, decay=decay)
    return Hit("1", "home", "a.md", 1, 2, "", "memory", None, candidate.score, "text", Lines(1, 2), candidate)


def lost(score: float, stage: Stage = "min_score") -> Lost:
    return Lost(Candidate(1, {}, score, relevance=score), stage)


def test_what_scores_too_little_is_told() -> None:
    absence = explain_absence([], [lost(0.12), lost(0.07)], 0.2, 0.1, filtered=False, limit=6)
    assert absence
    assert absence.best_score == 0.12
    assert "the best of 2 candidates scores 0.120, less than min_score 0.2" in absence.reason
    assert absence.hint
    assert "min_score of 0" in absence.hint


def test_nothing_to_be_found_is_told() -> None:
    absence = explain_absence([], [], 0.2, 0.1, filtered=False, limit=6)
    assert absence
    assert absence.reason == "nothing in this memory has these words or this meaning"


def test_filters_are_held_responsible() -> None:
    absence = explain_absence([], [], 0.2, 0.1, filtered=True, limit=6)
    assert absence
    assert "filters" in absence.reason


def test_who_asks_for_no_hits_gets_no_excuse() -> None:
    assert explain_absence([], [lost(0.5)], 0.2, 0.1, filtered=False, limit=0) is None


def test_too_little_to_go_by_is_told() -> None:
    absence = explain_absence([], [lost(0.09, "abstain"), lost(0.07, "abstain")], 0.05, 0.1, filtered=False, limit=6)
    assert absence
    assert "the best of 2 candidates has a relevance of 0.090, less than 0.1 (search.abstain)" in absence.reason
    assert absence.best_score == 0.09


def test_age_makes_no_answer_absent() -> None:
    old = Candidate(1, {}, 0.11, relevance=0.11, decay=0.5)
    assert not is_absent([old], 0.1)
    assert is_absent([old], 0.12)
    assert is_absent([], 0.1)
    assert not is_absent([], 0.0)


def test_the_rerankers_doubt_makes_no_answer_absent_and_its_word_makes_one_present() -> None:
    doubted = Candidate(1, {}, 0.15, relevance=0.08, rerank=RerankStep(-11.0, 0.02, 0, 1, 0.15))
    vouched = Candidate(1, {}, 0.08, relevance=0.15, rerank=RerankStep(5.0, 0.84, 0, 1, 0.08))
    assert not is_absent([doubted], 0.1)
    assert not is_absent([vouched], 0.1)
    assert is_absent([doubted, vouched], 0.2)
    absence = explain_absence([], [Lost(doubted, "abstain")], 0.05, 0.2, filtered=False, limit=6)
    assert absence
    assert "a relevance of 0.150, less than 0.2" in absence.reason


FAR = Weight(prior=1.0, noise=0.3, best=0.1, value=0.5)
NEAR = Weight(prior=1.0, noise=0.3, best=0.2, value=0.5)  # as near as nonsense may come
MEASURED = {"vector": 0.3, "words": 0.3}
READ, UNREAD = Noise(MEASURED, spread=0.8), Noise(MEASURED, spread=0.5)  # a script that the model reads; or not


@pytest.mark.parametrize(
    ("weights", "noise"),
    [
        ({"vector": FAR, "words": NEAR}, READ),
        ({"vector": NEAR, "words": FAR}, UNREAD),
    ],
)
def test_a_query_that_is_far_from_everything_is_answered_by_what_is_surely_relevant(
    weights: dict[str, Weight], noise: Noise
) -> None:
    assert least_relevance(0.1, weights, noise) == pytest.approx(0.2)
    assert least_relevance(0.0, weights, noise) == 0.0


@pytest.mark.parametrize(
    ("weights", "noise"),
    [
        ({"vector": NEAR, "words": FAR}, READ),  # other words can say the same
        ({"vector": FAR, "words": NEAR}, UNREAD),
        ({"words": FAR}, READ),  # there are no vectors
    ],
)
def test_where_what_reads_the_script_finds_something_the_usual_relevance_is_enough(
    weights: dict[str, Weight], noise: Noise
) -> None:
    assert least_relevance(0.1, weights, noise) == 0.1


def test_a_query_that_names_a_stranger_is_answered_by_what_is_surely_relevant() -> None:
    assert least_relevance(0.1, {"vector": NEAR}, READ, stranger=True) == pytest.approx(0.2)


def test_in_a_large_memory_more_is_asked_for() -> None:
    """What has nothing to do with a question comes the nearer to it the more there is."""
    least = [least_relevance(0.1, {}, Noise(MEASURED, chunks=chunks)) for chunks in (0, 80, 160, 320, 1_000_000)]
    assert least == pytest.approx([0.1, 0.1, 0.125, 0.15, 0.15])
    assert least_relevance(0.1, {"vector": FAR}, Noise(MEASURED, chunks=1_000)) == pytest.approx(
        0.2
    )  # as in a small one


def test_in_a_memory_of_a_few_notes_less_is_asked_for() -> None:
    assert least_relevance(0.1, {"vector": NEAR}, Noise(chunks=9)) == pytest.approx(0.07)
    assert least_relevance(0.1, {"vector": NEAR}, Noise(chunks=9), stranger=True) == pytest.approx(0.14)


def test_of_a_few_notes_in_a_script_that_the_model_hardly_reads_still_less_is_asked_for() -> None:
    assert least_relevance(0.1, {"vector": NEAR}, Noise(spread=0.5, chunks=9)) == pytest.approx(0.035)


def test_words_that_stand_nowhere_are_named_as_they_were_typed() -> None:
    words = as_typed(["kafka", "ora"], "what about Kafka, ORA-01555?")
    absence = explain_absence([], [lost(0.07, "abstain")], 0.05, 0.08, filtered=False, limit=6, missing=words)
    assert absence
    assert absence.reason.startswith("nothing here mentions “Kafka” or “ORA”; the only candidate has a relevance")


def test_hits_that_little_speaks_for_are_called_doubtful() -> None:
    hits = [found(0.14), found(0.11)]
    doubt = explain_doubt(hits, [hit.candidate for hit in hits], 0.2, ["Kafka"])
    assert doubt
    assert doubt.relevance == 0.14
    assert doubt.reason.startswith("nothing here mentions “Kafka”; even the best has a relevance of 0.14, less than")
    assert "less than 0.2 (search.doubt)" in doubt.reason


def test_what_is_as_relevant_as_an_answer_is_not_doubted_however_old_it_is() -> None:
    old = found(0.2, decay=0.5)
    assert explain_doubt([old], [old.candidate], 0.2, ["Kafka"]) is None
    assert explain_doubt([old], [old.candidate], 0.0) is None


def test_an_empty_answer_is_not_doubted_besides() -> None:
    assert explain_doubt([], [found(0.1).candidate], 0.2) is None
