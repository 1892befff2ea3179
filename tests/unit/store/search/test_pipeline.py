from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memoryd.store.errors import EmbedderUnavailable
from memoryd.store.generations import Pending
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Answer
from memoryd.store.search.noise import Noise, noise_record
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import Decay, NamedDays, SearchQuery, SearchSettings
from tests.support.documents import make_document
from tests.support.fake_embedder import FakeEmbedder
from tests.support.ledger import Ledger, open_ledger
from tests.support.memory_vectors import MemoryVectors

TODAY = date(2026, 11, 15)
PLAIN = SearchSettings(decay=Decay(strength=0))
LEXICAL = {"words": 1.0, "trigram": 0.5, "vector": 0.0}


class Meaning:
    """A vector side that works: the fake embedder over an index in memory."""

    fingerprint: str | None = None  # as the ledger says

    def __init__(self, ledger: Ledger) -> None:
        self.embedder = FakeEmbedder()
        self.vectors = MemoryVectors(self.embedder.identity.dimension)
        self.ledger = ledger
        ledger.generations.activate(self.embedder.identity, 0.0)

    def learn(self) -> None:
        """Embed every passage that the ledger holds."""
        texts = list(self.ledger.passage_ids())
        vectors = self.embedder.embed_documents(texts)
        self.ledger.embed(self.vectors, dict(zip(texts, vectors, strict=True)))

    def knows_query(self, text: str) -> bool:
        return False

    def embed_query(self, text: str) -> Vectors:
        return self.embedder.embed_query(text)

    def embed_passage(self, text: str) -> Vectors:
        return self.embedder.embed_documents([text])[0]

    def index(self) -> VectorIndex:
        return self.vectors


class Absent:
    """A vector side that is not there yet."""

    fingerprint: str | None = None  # as the ledger says

    def knows_query(self, text: str) -> bool:
        return False

    def embed_query(self, text: str) -> Vectors:
        raise EmbedderUnavailable("the model is being loaded", hint="wait a little")

    def index(self) -> VectorIndex:
        raise AssertionError("not asked without a query vector")


class Forbidden:
    """A vector side that must not be asked."""

    fingerprint: str | None = None  # as the ledger says

    def knows_query(self, text: str) -> bool:
        return False

    def embed_query(self, text: str) -> Vectors:
        raise AssertionError("a leg of weight 0 does not run")

    def index(self) -> VectorIndex:
        raise AssertionError("a leg of weight 0 does not run")


@pytest.fixture
def meaning(ledger: Ledger) -> Meaning:
    return Meaning(ledger)


def ask(
    ledger: Ledger,
    text: str,
    semantics: Meaning | Absent | Forbidden,
    settings: SearchSettings = PLAIN,
    **options: Any,
) -> Answer:
    query = replace(SearchQuery(text, TODAY), **options)
    return search(query, settings, ledger.database, semantics, lambda: [])


def paths(answer: Answer) -> list[str]:
    return [hit.path for hit in answer.hits]


def put_notes(ledger: Ledger, meaning: Meaning | None = None) -> None:
    ledger.put(
        make_document("MEMORY.md", "Ana prefers tea over coffee\n", heading="Preferences"),
        make_document("memory/2026-11-10.md", "deployed the billing service\n", written=date(2026, 11, 10)),
        make_document("memory/projects.md", "the billing service talks to the ledger\n", "the garden needs water\n"),
        make_document("skills/deploy.md", "how to deploy a service: run the script\n", source="skills"),
        make_document("memory/work.md", "the billing meeting is on Monday\n", workspace="work"),
    )
    if meaning:
        meaning.learn()


# -- both legs ------------------------------------------------------------------------------------------------


def test_query_is_answered_with_place_and_parts(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    answer = ask(ledger, "garden water", meaning)
    assert answer.degraded is None
    hit = answer.hits[0]
    assert (hit.workspace, hit.path, hit.source, hit.date) == ("home", "memory/projects.md", "memory", None)
    assert (hit.start_line, hit.end_line) == (2, 2)
    assert hit.snippet == "the garden needs water"
    assert hit.score == max(other.score for other in answer.hits)
    assert hit.candidate.legs.keys() == {"words", "trigram", "vector"}
    assert hit.candidate.legs["vector"].score > 0
    assert hit.candidate.legs["words"].score > 0
    assert hit.candidate.legs["trigram"].score > 0
    assert (hit.candidate.decay, hit.candidate.age_days) == (1.0, None)
    assert answer.candidates.keys() == {"words", "trigram", "vector"}
    assert answer.timings.keys() == {"words", "trigram", "embed", "nearest", "vector", "rank"}


def test_every_candidate_is_judged_by_every_leg_however_few_each_proposes(ledger: Ledger, meaning: Meaning) -> None:
    notes = [
        f"note {number}: {'garden ' * (number % 5)}{'water ' * (number % 3)}{'bed ' * number}\n" for number in range(30)
    ]
    ledger.put(*(make_document(f"{number}.md", text) for number, text in enumerate(notes)))
    meaning.learn()
    few, many = (ask(ledger, "garden water", meaning, replace(PLAIN, candidates=count), limit=3) for count in (3, 30))
    told = judged(many)
    assert 3 < len(judged(few)) < len(told)
    for chunk, (shares, fused) in judged(few).items():
        assert shares.keys() == told[chunk][0].keys()
        assert shares == pytest.approx(told[chunk][0])
        assert fused == pytest.approx(told[chunk][1])


def judged(answer: Answer) -> dict[int, tuple[dict[str, float], float]]:
    """What the legs said of every candidate, each by itself and together."""
    candidates = [*(hit.candidate for hit in answer.hits), *(lost.candidate for lost in answer.lost)]
    return {each.chunk_id: ({leg: place.share for leg, place in each.legs.items()}, each.fused) for each in candidates}


def test_lines_are_those_of_the_file_as_it_is_now(ledger: Ledger, meaning: Meaning) -> None:
    ledger.put(make_document("a.md", "one\ntwo\n", "three\nfour about whales\n", "five\n", chunks=[(0, 0), (1, 2)]))
    meaning.learn()
    hit = ask(ledger, "whales", meaning).hits[0]
    assert (hit.start_line, hit.end_line) == (3, 5)
    ledger.put(
        make_document(
            "a.md", "one\ntwo\n", "three\nfour about whales\n", "five\n", chunks=[(0, 0), (1, 2)], first_line=11
        )
    )
    moved = ask(ledger, "whales", meaning).hits[0]
    assert (moved.start_line, moved.end_line, moved.id) == (13, 15, hit.id)


def test_scores_come_best_first_and_in_0_to_1(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    scores = [hit.score for hit in ask(ledger, "billing service deploy", meaning, limit=100).hits]
    assert len(scores) > 3
    assert all(first >= second for first, second in pairwise(scores))
    assert all(0 < score <= 1 for score in scores)


def test_limit_never_changes_the_order(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    whole = [hit.id for hit in ask(ledger, "billing service", meaning, limit=100).hits]
    for limit in range(len(whole) + 1):
        assert [hit.id for hit in ask(ledger, "billing service", meaning, limit=limit).hits] == whole[:limit]


def test_settings_limit_holds_where_the_query_has_none(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    assert len(ask(ledger, "billing service", meaning, replace(PLAIN, limit=2)).hits) == 2


def test_min_score_cuts_the_tail(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    whole = ask(ledger, "billing service", meaning, limit=100).hits
    bar = whole[1].score
    kept = ask(ledger, "billing service", meaning, limit=100, min_score=bar).hits
    assert [hit.id for hit in kept] == [hit.id for hit in whole if hit.score >= bar]
    assert ask(ledger, "billing service", meaning, replace(PLAIN, min_score=1.1)).hits == []


def test_an_answer_that_nothing_speaks_for_is_empty(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    best = max(hit.candidate.relevance for hit in ask(ledger, "billing service", meaning).hits)
    doubtful = replace(PLAIN, abstain=best + 0.01)
    assert ask(ledger, "billing service", meaning, doubtful).hits  # how noise looks here is not known yet
    measured = noise_record({"latin": Noise({"words": 0.0, "trigram": 0.0, "vector": 0.0})}, 10)
    ledger.database.remember(f"noise:{meaning.embedder.identity.fingerprint}", measured)
    answer = ask(ledger, "billing service", meaning, doubtful)
    assert answer.hits == []
    assert {lost.stage for lost in answer.lost} == {"abstain"}
    assert answer.absence
    assert "search.abstain" in answer.absence.reason
    assert ask(ledger, "billing service", meaning, replace(PLAIN, abstain=best - 0.01)).hits
    assert ask(ledger, "billing service", meaning, doubtful, min_score=0.0).hits  # who asks for all gets all


def test_a_memory_of_a_few_notes_is_silent_too_once_it_was_looked_at(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    best = max(hit.candidate.relevance for hit in ask(ledger, "billing service", meaning).hits)
    doubtful = replace(PLAIN, abstain=best / 0.7 + 0.01)
    assert ask(ledger, "billing service", meaning, doubtful).hits
    ledger.database.remember(f"noise:{meaning.embedder.identity.fingerprint}", noise_record({}, 3))
    assert ask(ledger, "billing service", meaning, doubtful).hits == []
    assert ask(ledger, "billing service", meaning, replace(PLAIN, abstain=best / 0.7 - 0.01)).hits


def test_of_a_query_with_a_name_that_no_note_has_twice_as_much_is_asked(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    ledger.database.remember(f"noise:{meaning.embedder.identity.fingerprint}", noise_record({}, 3))
    strange, plain = (
        ask(ledger, f"did {who} look after the billing service", meaning) for who in ("Zoltan", "anybody")
    )
    assert "Zoltan" in strange.missing
    assert (plain.least, strange.least) == pytest.approx((0.07, 0.14))
    between = replace(PLAIN, abstain=0.75 / 0.7 * max(hit.candidate.relevance for hit in strange.hits))
    silent = ask(ledger, "did Zoltan look after the billing service", meaning, between)
    assert silent.absence
    assert silent.absence.reason.startswith("nothing here mentions “Zoltan” or “look”; ")
    assert ask(ledger, "did zoltan look after the billing service", meaning, between).hits


def test_hits_that_little_speaks_for_are_answered_and_doubted(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    best = max(hit.candidate.relevance for hit in ask(ledger, "billing service", meaning).hits)
    strict = replace(PLAIN, doubt=best + 0.01)
    assert ask(ledger, "billing service", meaning, strict).doubt is None  # how noise looks here is not known yet
    measured = noise_record({"latin": Noise({"words": 0.0, "trigram": 0.0, "vector": 0.0})}, 10)
    ledger.database.remember(f"noise:{meaning.embedder.identity.fingerprint}", measured)
    answer = ask(ledger, "billing service", meaning, strict)
    assert answer.hits
    assert answer.doubt
    assert answer.doubt.relevance == pytest.approx(best)
    assert ask(ledger, "billing service", meaning, replace(PLAIN, doubt=best - 0.01)).doubt is None
    assert ask(ledger, "billing service", meaning, replace(PLAIN, doubt=0.0)).doubt is None
    assert ask(ledger, "billing service", meaning, strict, min_score=0.0).doubt  # it holds for whoever asks


@pytest.mark.parametrize("leg", ["both", "keywords"])
def test_answer_names_the_words_that_nothing_has(ledger: Ledger, meaning: Meaning, leg: str) -> None:
    put_notes(ledger, meaning)
    settings = PLAIN if leg == "both" else replace(PLAIN, weights=LEXICAL)
    answer = ask(ledger, "Where was the billing service Zweitwagen?", meaning, settings)
    assert answer.hits
    assert answer.missing == ("Zweitwagen",)  # as it was typed, and no word that every question has
    assert ask(ledger, "billing service", meaning, settings).missing == ()


def test_same_text_is_answered_once(ledger: Ledger, meaning: Meaning) -> None:
    ledger.put(
        make_document("a.md", "Standup at ten\n"),
        make_document("b.md", "standup at TEN\n\n"),
        make_document("c.md", "standup notes\n"),
    )
    meaning.learn()
    answer = ask(ledger, "standup ten", meaning)
    assert len(answer.hits) == 2
    assert len({hit.snippet.casefold() for hit in answer.hits}) == 2


def test_same_files_give_the_same_answer_in_whatever_order_they_were_indexed(ledger: Ledger, tmp_path: Path) -> None:
    notes = [make_document(f"{number}.md", f"note {number % 3} about the service\n") for number in range(9)]
    answers = []
    with open_ledger(tmp_path / "other.db") as other:
        for each, documents in ((ledger, notes), (other, notes[::-1])):
            meaning = Meaning(each)
            each.put(*documents)
            meaning.learn()
            answers.append([(hit.id, hit.score) for hit in ask(each, "service note", meaning).hits])
    assert answers[0] == answers[1]


def test_nothing_asked_is_nothing_found(ledger: Ledger) -> None:
    put_notes(ledger)
    answer = ask(ledger, "   ", Forbidden())
    assert (answer.hits, answer.degraded) == ([], None)


def test_empty_memory_has_no_hits(ledger: Ledger, meaning: Meaning) -> None:
    assert ask(ledger, "anything", meaning).hits == []


def test_pending_is_told(ledger: Ledger) -> None:
    pending = [Pending("home", "a.md", "text")]
    answer = search(SearchQuery("x", TODAY), PLAIN, ledger.database, Absent(), lambda: pending)
    assert answer.pending == pending


def test_pending_is_of_the_snapshot_that_is_searched(ledger: Ledger, meaning: Meaning) -> None:
    """Else a note that becomes searchable meanwhile would be neither found nor pending."""

    class SavedMeanwhile(Meaning):
        def knows_query(self, text: str) -> bool:
            ledger.put(make_document("memory/new.md", "the garden was watered\n"))
            return False

    def pending() -> list[Pending]:
        with ledger.database.read() as sql:
            is_there = sql.execute("SELECT 1 FROM documents WHERE path = 'memory/new.md'").fetchone()
        return [] if is_there else [Pending("home", "memory/new.md", "text")]

    put_notes(ledger, meaning)
    late = SavedMeanwhile(ledger)
    late.vectors = meaning.vectors
    answer = search(SearchQuery("garden", TODAY), PLAIN, ledger.database, late, pending)
    assert paths(answer) == ["memory/projects.md"]
    assert [entry.path for entry in answer.pending] == ["memory/new.md"]
    assert pending() == []


# -- one leg --------------------------------------------------------------------------------------------------


def test_missing_leg_is_told_and_costs_nothing(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    answer = ask(ledger, "garden water", Absent())
    assert answer.degraded is not None
    assert (answer.degraded.leg, answer.degraded.reason) == ("vector", "the model is being loaded")
    assert answer.degraded.hint == "wait a little"
    assert answer.candidates.keys() == {"words", "trigram"}
    without = ask(ledger, "garden water", meaning, replace(PLAIN, weights=LEXICAL))
    assert [(hit.id, hit.score) for hit in answer.hits] == [(hit.id, hit.score) for hit in without.hits]


def test_index_that_fails_degrades_like_an_embedder_that_fails(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    meaning.embedder.failure = EmbedderUnavailable("out of memory")
    answer = ask(ledger, "garden", meaning)
    assert answer.degraded is not None
    assert answer.degraded.reason == "out of memory"
    assert paths(answer) == ["memory/projects.md"]


def test_leg_of_weight_0_is_not_run(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    words = ask(ledger, "garden water", Forbidden(), replace(PLAIN, weights=LEXICAL))
    assert words.degraded is None
    assert words.hits[0].candidate.legs.keys() == {"words", "trigram"}
    alone = ask(ledger, "garden water", meaning, replace(PLAIN, weights={"words": 0, "trigram": 0, "vector": 1}))
    assert not {"words", "trigram"} & alone.timings.keys()
    assert alone.hits[0].candidate.legs.keys() == {"vector"}


def test_fresh_note_is_judged_by_its_words_until_its_vectors_are_there(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    ledger.put(make_document("memory/fresh.md", "zeppelins are back\n"))
    hit = ask(ledger, "zeppelins", meaning).hits[0]
    assert hit.path == "memory/fresh.md"
    alone = ask(ledger, "zeppelins", meaning, replace(PLAIN, weights=LEXICAL)).hits[0]
    assert hit.score == pytest.approx(alone.score)


def test_vector_of_a_forgotten_note_never_surfaces(ledger: Ledger, meaning: Meaning) -> None:
    put_notes(ledger, meaning)
    ledger.documents.forget("home", "MEMORY.md", 0.0)
    assert "MEMORY.md" not in paths(ask(ledger, "tea or coffee", meaning, limit=100))


# -- filters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"workspaces": ("work",)}, {"memory/work.md"}),
        ({"sources": ("skills",)}, {"skills/deploy.md"}),
        ({"paths": ("memory/2026-*.md",)}, {"memory/2026-11-10.md"}),
        ({"paths": ("skills/", "MEMORY.md")}, {"skills/deploy.md", "MEMORY.md"}),
        ({"workspaces": ("home",), "paths": ("memory/*.md",)}, {"memory/2026-11-10.md", "memory/projects.md"}),
        ({"workspaces": ("work",), "sources": ("skills",)}, set()),
    ],
)
def test_filters_leave_only_what_they_name(
    ledger: Ledger, meaning: Meaning, options: dict[str, Any], expected: set[str]
) -> None:
    put_notes(ledger, meaning)
    assert set(paths(ask(ledger, "billing service deploy coffee", meaning, limit=100, **options))) == expected


def test_filter_finds_what_a_small_pool_would_have_missed(ledger: Ledger, meaning: Meaning) -> None:
    for number in range(30):
        ledger.put(make_document(f"memory/{number}.md", f"backup of machine {number}\n"))
    ledger.put(
        make_document("skills/other.md", "a long text that says backup once, among much else\n", source="skills")
    )
    meaning.learn()
    answer = ask(ledger, "backup of machine", meaning, replace(PLAIN, candidates=3), sources=("skills",))
    assert paths(answer) == ["skills/other.md"]
    assert answer.hits[0].candidate.legs.keys() == {"words", "trigram", "vector"}


# -- concentration --------------------------------------------------------------------------------------------


def put_scattered_and_whole(ledger: Ledger, meaning: Meaning) -> None:
    """Two notes with the same words; one of them has all of them in one passage."""
    others = ["a quiet morning in the yard\n", "nothing else was done that day\n"]
    ledger.put(
        make_document("scattered.md", "the fence fell, fence\n", *others, "the goat ate, goat\n", chunks=[(0, 3)]),
        make_document(
            "whole.md", others[0], "the goat broke the fence\n", others[1], "and then it slept\n", chunks=[(0, 3)]
        ),
    )
    meaning.learn()


def test_note_that_says_it_in_one_place_comes_before_one_that_says_it_all_over(
    ledger: Ledger, meaning: Meaning
) -> None:
    put_scattered_and_whole(ledger, meaning)
    question = "did the goat break the fence"
    apart = ask(ledger, question, meaning, replace(PLAIN, concentration=0.0))
    assert paths(apart) == ["scattered.md", "whole.md"]
    assert all(hit.candidate.best is None for hit in apart.hits)
    answer = ask(ledger, question, meaning)
    assert paths(answer) == ["whole.md", "scattered.md"]
    first, second = (hit.candidate.best for hit in answer.hits)
    assert first
    assert second
    assert first.share > second.share
    assert (answer.hits[0].best.start, answer.hits[0].best.end) == (2, 2)


@pytest.mark.parametrize(
    "settings",
    [
        replace(PLAIN, fusion="rrf"),
        replace(PLAIN, weights={"words": 1.0, "trigram": 0.0, "vector": 0.0}),
        replace(PLAIN, weights={"words": 0.0, "trigram": 0.0, "vector": 1.0}),
    ],
    ids=["ranks", "words alone", "vectors alone"],
)
def test_ranks_and_a_leg_alone_are_left_as_they_are(ledger: Ledger, meaning: Meaning, settings: SearchSettings) -> None:
    put_scattered_and_whole(ledger, meaning)
    answers = [ask(ledger, "goat fence", meaning, replace(settings, concentration=part)) for part in (0.0, 0.9)]
    assert answers[0].hits == answers[1].hits


def test_passages_are_judged_by_their_words_while_there_are_no_vectors(ledger: Ledger, meaning: Meaning) -> None:
    put_scattered_and_whole(ledger, meaning)
    answer = ask(ledger, "did the goat break the fence", Absent())
    assert answer.degraded
    assert paths(answer) == ["whole.md", "scattered.md"]


# -- decay ----------------------------------------------------------------------------------------------------


def test_evergreen_comes_first_among_equals(ledger: Ledger, meaning: Meaning) -> None:
    old = TODAY - timedelta(days=60)
    for path, written in (("memory/old.md", old), ("memory/rules.md", None), ("memory/new.md", TODAY)):
        ledger.put(make_document(path, f"backup rule in {path}\n", written=written))
    settings = SearchSettings(decay=Decay(strength=1), weights=LEXICAL)
    answer = ask(ledger, "backup rule", meaning, settings)
    decays = {hit.path: (hit.candidate.decay, hit.candidate.age_days) for hit in answer.hits}
    assert decays == {
        "memory/old.md": (pytest.approx(0.25), 60),
        "memory/rules.md": (1.0, None),
        "memory/new.md": (1.0, 0),
    }
    assert paths(answer)[-1] == "memory/old.md"
    assert all(hit.score == hit.candidate.relevance * hit.candidate.decay for hit in answer.hits)


def test_strength_0_leaves_the_order_of_relevance(ledger: Ledger, meaning: Meaning) -> None:
    ledger.put(
        make_document("a.md", "backup backup rule\n", written=date(2001, 1, 1)), make_document("b.md", "backup\n")
    )
    answer = ask(ledger, "backup rule", meaning, replace(PLAIN, weights=LEXICAL))
    assert paths(answer) == ["a.md", "b.md"]


# -- named days -----------------------------------------------------------------------------------------------


def put_deploys(ledger: Ledger, meaning: Meaning) -> None:
    ledger.put(
        make_document("memory/2026-10-02.md", "deployed the billing service\n", written=date(2026, 10, 2)),
        make_document("memory/2026-11-10.md", "deployed the billing service twice\n", written=date(2026, 11, 10)),
        make_document("memory/rules.md", "the billing service is deployed by hand\n"),
    )
    meaning.learn()


def test_note_of_the_days_that_are_named_comes_first(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    settings = SearchSettings(weights=LEXICAL)
    assert paths(ask(ledger, "deployed the billing service", meaning, settings))[0] != "memory/2026-10-02.md"
    answer = ask(ledger, "deployed the billing service in October 2026", meaning, settings)
    first = answer.hits[0]
    assert first.path == "memory/2026-10-02.md"
    assert answer.period
    assert answer.period.said == "october 2026"
    assert first.candidate.decay == 1.0
    assert first.candidate.age_days == 44
    assert first.candidate.named
    assert first.candidate.named.days_away == 0
    assert first.candidate.named.relevance < first.candidate.relevance <= 1
    assert first.score == first.candidate.relevance * first.candidate.decay


def test_ages_count_from_the_days_that_are_named(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    settings = SearchSettings(decay=Decay(strength=1), weights=LEXICAL, min_score=0)
    answer = ask(ledger, "deployed on 2026-10-03", meaning, settings)
    away = {hit.path: hit.candidate.named and hit.candidate.named.days_away for hit in answer.hits}
    assert away == {"memory/2026-10-02.md": -1, "memory/2026-11-10.md": 38, "memory/rules.md": None}
    decays = {hit.path: hit.candidate.decay for hit in answer.hits}
    assert decays["memory/2026-10-02.md"] == pytest.approx(2 ** (-1 / 30))
    assert decays["memory/2026-11-10.md"] == pytest.approx(2 ** (-38 / 30))


def test_evergreen_neither_gains_nor_loses_by_days_that_are_named(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    query = "deployed the billing service on 2026-10-02"  # words that are known: names of files have them
    named, unnamed = (
        next(hit.candidate for hit in ask(ledger, query, meaning, settings).hits if hit.path == "memory/rules.md")
        for settings in (SearchSettings(weights=LEXICAL), undated(SearchSettings(weights=LEXICAL)))
    )
    assert (named.relevance, named.decay, named.named) == (unnamed.relevance, 1.0, None)


def undated(settings: SearchSettings) -> SearchSettings:
    return replace(settings, named_days=NamedDays(strength=0))


def test_days_of_which_nothing_was_written_change_nothing(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    query = "deployed the billing service in May 2019"
    answer = ask(ledger, query, meaning, SearchSettings())
    assert answer.period is None
    assert answer.hits == ask(ledger, query, meaning, undated(SearchSettings())).hits


def test_notes_of_the_days_that_are_named_are_candidates_however_many_others_are_better(
    ledger: Ledger, meaning: Meaning
) -> None:
    for number in range(40):
        ledger.put(make_document(f"memory/{number}.md", f"goat {number} ate the hedge\n", written=TODAY))
    ledger.put(make_document("memory/then.md", "a goat was seen, and much besides that\n", written=date(2026, 5, 4)))
    meaning.learn()
    few = SearchSettings(candidates=3, limit=50, min_score=0)
    for settings in (few, replace(few, weights=LEXICAL)):
        asked = "goat ate the hedge, in May 2026"
        assert "memory/then.md" in paths(ask(ledger, asked, meaning, settings))
        assert "memory/then.md" not in paths(ask(ledger, asked, meaning, undated(settings)))


def test_of_a_month_without_a_year_those_count_of_which_there_are_notes(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    ledger.put(make_document("memory/then.md", "deployed by hand\n", written=date(2024, 10, 9)))
    answer = ask(ledger, "deployed in October", meaning, SearchSettings(weights=LEXICAL))
    assert answer.period
    assert [first.year for first, _ in answer.period.spans] == [2026, 2024]
    within = {hit.path for hit in answer.hits if hit.candidate.named and hit.candidate.named.days_away == 0}
    assert within == {"memory/2026-10-02.md", "memory/then.md"}


def test_note_need_not_say_when_it_was_written(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    plain = ask(ledger, "deployed the billing service", meaning, SearchSettings(weights=LEXICAL))
    answer = ask(ledger, "deployed the billing service in October", meaning, SearchSettings(weights=LEXICAL))
    alone = {hit.path: hit.candidate.relevance for hit in plain.hits}
    rules = next(hit.candidate for hit in answer.hits if hit.path == "memory/rules.md")
    assert rules.relevance == pytest.approx(alone["memory/rules.md"])
    assert next(hit.score for hit in answer.hits if hit.path == "memory/2026-10-02.md") > alone["memory/2026-10-02.md"]


def test_days_are_named_from_the_day_that_is_pretended(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    answer = ask(ledger, "deployed yesterday", meaning, SearchSettings(weights=LEXICAL), today=date(2026, 10, 3))
    assert answer.period
    assert answer.period.spans == ((date(2026, 10, 2), date(2026, 10, 2)),)
    assert paths(answer)[0] == "memory/2026-10-02.md"


def test_notes_that_may_not_be_seen_do_not_tell_that_they_are_of_those_days(ledger: Ledger, meaning: Meaning) -> None:
    put_deploys(ledger, meaning)
    secret = make_document("memory/secret.md", "deployed\n", written=date(2026, 3, 1))
    ledger.put(replace(secret, scope="user:ann"))
    meaning.learn()
    for scope, seen in (("user:ann", True), ("user:bob", False)):
        answer = ask(ledger, "deployed in March 2026", meaning, SearchSettings(min_score=0), scope=scope)
        assert (answer.period is not None, "memory/secret.md" in paths(answer)) == (seen, seen)


# -- snippets -------------------------------------------------------------------------------------------------


def test_snippet_shows_the_best_passage(ledger: Ledger, meaning: Meaning) -> None:
    filler = [f"filler sentence number {number} about nothing at all\n" for number in range(40)]
    ledger.put(make_document("a.md", *filler[:20], "whales sing in the deep\n", *filler[20:], chunks=[(0, 40)]))
    meaning.learn()
    hit = ask(ledger, "whales sing deep", meaning, replace(PLAIN, snippet_chars=200)).hits[0]
    assert "whales sing" in hit.snippet
    assert len(hit.snippet) <= 202
    assert (hit.start_line, hit.end_line) == (1, 41)
