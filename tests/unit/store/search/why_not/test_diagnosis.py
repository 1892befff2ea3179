"""Each way in which a passage can be lost, told from the others, with a remedy that holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from memoryd.store.errors import EmbedderUnavailable
from memoryd.store.model import Superseding
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Answer
from memoryd.store.search.noise import Noise, noise_record
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import Decay, Mmr, SearchQuery, SearchSettings
from memoryd.store.search.why_not.case import Case, Remembered
from memoryd.store.search.why_not.changes import Change
from memoryd.store.search.why_not.diagnosis import find_reason
from memoryd.store.search.why_not.finding import Finding
from memoryd.store.search.why_not.target import read_target
from tests.support.documents import make_document
from tests.support.fake_embedder import FakeEmbedder
from tests.support.ledger import Ledger
from tests.support.memory_vectors import MemoryVectors

TODAY = date(2026, 11, 15)
WORDS_ALONE = {"words": 1.0, "trigram": 0.5, "vector": 0.0}
PLAIN = SearchSettings(decay=Decay(strength=0), weights=WORDS_ALONE, adaptive=False, min_score=0)


class Meaning:
    """A vector side over the fake embedder. It knows what it was taught, and may fail."""

    fingerprint: str | None = None  # as the ledger says

    def __init__(self, ledger: Ledger) -> None:
        self._embedder = FakeEmbedder()
        self._vectors = MemoryVectors(self._embedder.identity.dimension)
        self._ledger = ledger
        self.failure: EmbedderUnavailable | None = None
        ledger.generations.activate(self._embedder.identity, 0.0)

    def learn(self) -> None:
        texts = list(self._ledger.passage_ids())
        vectors = self._embedder.embed_documents(texts)
        self._ledger.embed(self._vectors, dict(zip(texts, vectors, strict=True)))

    def knows_query(self, text: str) -> bool:
        return False

    def embed_query(self, text: str) -> Vectors:
        if self.failure:
            raise self.failure
        return self._embedder.embed_query(text)

    def embed_passage(self, text: str) -> Vectors:
        return self._embedder.embed_query(text)

    def index(self) -> VectorIndex:
        return self._vectors


def open_case(
    ledger: Ledger,
    text: str,
    path: str,
    settings: SearchSettings = PLAIN,
    *,
    line: int = 1,
    meaning: Meaning | None = None,
    **options: Any,
) -> Case:
    semantics = meaning or Meaning(ledger)

    def ask(query: SearchQuery, settings: SearchSettings) -> Answer:
        return search(query, settings, ledger.database, semantics, lambda: [])

    with ledger.database.read() as sql:
        target = read_target(sql, "home", path, line)
    assert target is not None
    query = replace(SearchQuery(text, TODAY), **options)
    return Case(target, query, settings, Remembered(ask), ledger.database)


def solve(case: Case) -> Finding:
    """The finding, of which every remedy was tried once more."""
    finding = find_reason(case)
    for remedy in finding.remedies:
        if remedy.place is not None:
            assert case.changed(remedy.changes).spot().place == remedy.place
    lost_at = [stage.name for stage in finding.stages if stage.passed is False]
    assert len(lost_at) == (finding.verdict != "found")
    return finding


def changes(finding: Finding) -> list[dict[str, Any]]:
    return [{change.setting: change.value for change in remedy.changes} for remedy in finding.remedies]


def put_boats(ledger: Ledger, count: int = 9) -> None:
    """Notes about a boat, each longer than the one before: found in their order."""
    ledger.put(*(make_document(f"{number}.md", f"boat {'and more ' * number}\n") for number in range(1, count + 1)))


# -- among the hits -------------------------------------------------------------------------------------------------


def test_hit_is_told_by_its_place(ledger: Ledger) -> None:
    put_boats(ledger)
    finding = solve(open_case(ledger, "boat", "3.md"))
    assert (finding.verdict, finding.place, finding.remedies) == ("found", 3, ())
    assert "hit 3, 3.md#L1-L1" in finding.explanation
    assert finding.chunk is not None
    assert (finding.chunk.start_line, finding.chunk.end_line) == (1, 1)


def test_line_of_a_neighbour_that_was_joined_is_found_in_the_hit(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "boat one\n", "boat two boat\n", "sail\n", chunks=[(0, 1), (1, 2)]))
    finding = solve(open_case(ledger, "boat", "a.md", line=3))
    assert (finding.verdict, finding.place) == ("found", 1)
    assert "a.md#L1-L3" in finding.explanation


# -- the end of the way ----------------------------------------------------------------------------------------------


def test_beyond_the_limit_the_remedy_is_its_place(ledger: Ledger) -> None:
    put_boats(ledger)
    case = open_case(ledger, "boat", "8.md")
    finding = solve(case)
    assert (finding.verdict, finding.place) == ("limit", 8)
    assert changes(finding) == [{"limit": 8}]
    assert case.changed((Change("limit", 7),)).spot().stage == "limit"


def test_what_a_hundred_hits_would_not_reach_has_no_limit_for_a_remedy(ledger: Ledger) -> None:
    put_boats(ledger, 104)
    finding = solve(open_case(ledger, "boat", "103.md", replace(PLAIN, candidates=200)))
    assert (finding.verdict, finding.place) == ("limit", 103)
    assert not [each for each in changes(finding) if "limit" in each]


def test_where_nothing_is_returned_the_remedy_is_a_min_score(ledger: Ledger) -> None:
    put_boats(ledger)
    measured = noise_record({"latin": Noise({"words": 0.0, "trigram": 0.0})}, 9)
    meaning = Meaning(ledger)
    generation = ledger.generations.active()
    assert generation
    ledger.database.remember(f"noise:{generation.fingerprint}", measured)
    finding = solve(open_case(ledger, "boat sail", "5.md", replace(PLAIN, abstain=0.95), meaning=meaning))
    assert finding.verdict == "abstained"
    assert "less than 0.95 (search.abstain)" in finding.explanation
    assert any(remedy.keys() == {"min_score"} for remedy in changes(finding))


def test_below_min_score_the_remedy_is_the_score(ledger: Ledger) -> None:
    put_boats(ledger)
    case = open_case(ledger, "boat sail", "5.md", min_score=0.9)
    finding = solve(case)
    assert finding.verdict == "min_score"
    assert "less than min_score 0.9" in finding.explanation
    (remedy,) = changes(finding)
    score = next(lost for lost in case.answer().lost if case.target.chunk(lost.candidate.chunk_id)).candidate.score
    assert score - 0.01 < remedy["min_score"] <= score


def test_remedy_has_as_many_changes_as_are_needed(ledger: Ledger) -> None:
    put_boats(ledger)
    finding = solve(open_case(ledger, "boat sail", "9.md", limit=2, min_score=0.9, exclude=("9.md",)))
    assert finding.verdict == "filtered"
    (remedy,) = changes(finding)
    assert remedy.keys() == {"exclude", "min_score", "limit"}
    assert (remedy["exclude"], remedy["limit"]) == ((), 9)


def test_age_that_alone_costs_the_place_is_named(ledger: Ledger) -> None:
    put_boats(ledger, 6)
    ledger.put(make_document("old.md", "boat boat\n", written=TODAY - timedelta(days=90)))
    settings = replace(PLAIN, decay=Decay(strength=1.0), limit=3)
    finding = solve(open_case(ledger, "boat", "old.md", settings))
    assert (finding.verdict, finding.place) == ("decayed", 7)
    assert "90 days" in finding.explanation
    assert "hit 1 without decay" in finding.explanation
    assert {"limit": 7} in changes(finding)
    (strength,) = [each["search.decay.strength"] for each in changes(finding) if "search.decay.strength" in each]
    assert 0 <= strength < 1


def test_distance_from_the_days_that_are_named_is_told_as_such(ledger: Ledger) -> None:
    put_boats(ledger, 6)
    ledger.put(
        make_document("then.md", "boat\n", written=date(2026, 5, 10)),
        make_document("later.md", "boat boat\n", written=date(2026, 6, 30)),
    )
    settings = replace(PLAIN, decay=Decay(strength=1.0), limit=3)
    finding = solve(open_case(ledger, "boat in May 2026", "later.md", settings))
    assert finding.verdict == "decayed"
    assert "30 days after those that the query names" in finding.explanation


def test_age_is_not_blamed_for_what_would_be_lost_without_it(ledger: Ledger) -> None:
    put_boats(ledger, 6)
    ledger.put(make_document("old.md", f"boat {'and more ' * 30}\n", written=TODAY - timedelta(days=90)))
    finding = solve(open_case(ledger, "boat", "old.md", replace(PLAIN, decay=Decay(strength=1.0), limit=3)))
    assert finding.verdict == "limit"
    assert changes(finding) == [{"limit": 7}]


def test_twin_that_pushed_it_out_is_named(ledger: Ledger) -> None:
    ledger.put(
        make_document("first.md", "the red boat lies in the harbour\n"),
        make_document("twin.md", "the red boat lies in the harbour too\n"),
        make_document("other.md", "a red kite over the fields and the boat house far away from here\n"),
    )
    settings = replace(PLAIN, mmr=Mmr(enabled=True, relevance=0.3), limit=2)
    finding = solve(open_case(ledger, "red boat harbour", "twin.md", settings))
    assert (finding.verdict, finding.place) == ("mmr", 3)
    assert "first.md#L1-L1" in finding.explanation
    assert {"search.mmr.enabled": False} in changes(finding)
    assert {"limit": 3} in changes(finding)


def test_duplicate_names_the_hit_that_says_the_same(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "the boat sails\n"), make_document("b.md", "The boat sails\n"))
    case = open_case(ledger, "boat", "b.md")
    first = case.answer().hits[0]
    path = "b.md" if first.path == "a.md" else "a.md"
    finding = solve(open_case(ledger, "boat", path))
    assert (finding.verdict, finding.place) == ("duplicate", 1)
    assert f"hit 1, {first.citation}" in finding.explanation
    assert changes(finding) == [{"exclude": (first.id,)}]


# -- no candidate ----------------------------------------------------------------------------------------------------


def test_rank_of_what_no_leg_brought_is_told_with_the_pool_that_would_bring_it(ledger: Ledger) -> None:
    put_boats(ledger)
    case = open_case(ledger, "boat", "9.md", replace(PLAIN, candidates=4, limit=20))
    finding = solve(case)
    assert (finding.verdict, finding.place) == ("not_a_candidate", 9)
    assert {leg: place and place.rank for leg, place in finding.legs.items()} == {"words": 9, "trigram": 9}
    assert "#9 by words" in finding.explanation
    assert changes(finding) == [{"search.candidates": 9}]
    assert case.changed((Change("search.candidates", 8),)).spot().stage == "absent"


def test_words_that_the_passage_has_and_lacks_are_told(ledger: Ledger) -> None:
    put_boats(ledger)
    finding = solve(open_case(ledger, "the boats at night", "9.md", replace(PLAIN, candidates=4)))
    assert finding.words is not None
    assert (finding.words.has, finding.words.lacks, set(finding.words.ignored)) == (
        ("boats",),
        ("night",),
        {"the", "at"},
    )
    assert "it has boats, not night" in finding.explanation


def test_leg_that_is_off_and_would_have_brought_it_is_the_remedy(ledger: Ledger) -> None:
    meaning = Meaning(ledger)
    ledger.put(make_document("a.md", "sailing\n"), make_document("b.md", "kites\n"))
    meaning.learn()
    settings = replace(PLAIN, weights={"words": 1.0, "trigram": 0.0, "vector": 0.0})
    finding = solve(open_case(ledger, "sailin", "a.md", settings, meaning=meaning))
    assert finding.verdict == "not_a_candidate"
    assert changes(finding) == [{"search.weights.trigram": 0.5}, {"search.weights.vector": 1.0}]


def test_passage_without_its_vectors_is_to_be_waited_for(ledger: Ledger) -> None:
    meaning = Meaning(ledger)
    ledger.put(make_document("a.md", "sailing\n"))
    finding = solve(open_case(ledger, "kites", "a.md", SearchSettings(), meaning=meaning))
    assert finding.verdict == "vectors_pending"
    assert finding.hint is not None
    assert "vectors are pending" in finding.hint
    meaning.learn()
    assert solve(open_case(ledger, "kites", "a.md", SearchSettings(), meaning=meaning)).verdict != "vectors_pending"


def test_leg_that_did_not_run_is_told_with_its_remedy(ledger: Ledger) -> None:
    meaning = Meaning(ledger)
    meaning.failure = EmbedderUnavailable("the model is being loaded", hint="wait a little")
    ledger.put(make_document("a.md", "sailing\n"))
    finding = solve(open_case(ledger, "kites", "a.md", SearchSettings(), meaning=meaning))
    assert finding.verdict == "not_a_candidate"
    assert "the model is being loaded" in finding.explanation
    assert finding.hint == "wait a little"


def test_where_nothing_is_shared_the_passages_own_rare_words_are_proposed(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "the zeppelin lands at noon\n"), make_document("b.md", "lands at noon\n"))
    finding = solve(open_case(ledger, "kites", "a.md"))
    assert finding.verdict == "not_a_candidate"
    assert "none of the query's words (kites)" in finding.explanation
    assert changes(finding) == [{"query": "kites zeppelin"}]
    assert finding.hint is not None


# -- filtered --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told", "remedy"),
    [
        ({"sources": ("skills",)}, "source skills", {"source": ("skills", "memory")}),
        ({"paths": ("b*.md",)}, "path b*.md", {"path": ("b*.md", "a.md")}),
        ({"workspaces": ("work",)}, "workspace work", {"workspace": ("work", "home")}),
        ({"exclude": ("b.md", "a.*")}, "exclude a.*", {"exclude": ("b.md",)}),
        ({"after": date(2026, 11, 2)}, "after 2026-11-02 (the note is dated 2026-11-01)", {"after": date(2026, 11, 1)}),
        ({"before": date(2026, 10, 2)}, "before 2026-10-02", {"before": date(2026, 11, 1)}),
        ({"as_of": date(2026, 10, 2), "today": date(2026, 10, 2)}, "as_of 2026-10-02", {"as_of": date(2026, 11, 1)}),
        (
            {"sources": ("skills",), "after": date(2026, 11, 2)},
            "source skills (the note is of memory), and by after",
            {"source": ("skills", "memory"), "after": date(2026, 11, 1)},
        ),
    ],
)
def test_filter_that_hides_it_is_named_with_its_value(
    ledger: Ledger, options: dict[str, Any], told: str, remedy: dict[str, Any]
) -> None:
    ledger.put(make_document("a.md", "boat\n", written=date(2026, 11, 1)), make_document("b.md", "boat sail\n"))
    finding = solve(open_case(ledger, "boat", "a.md", **options))
    assert finding.verdict == "filtered"
    assert told in finding.explanation
    assert changes(finding) == [remedy]


def test_undated_note_is_shown_by_leaving_the_date_out(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "boat\n"))
    finding = solve(open_case(ledger, "boat", "a.md", after=date(2026, 11, 2)))
    assert "the note has no date" in finding.explanation
    assert changes(finding) == [{"after": None}]


def test_superseded_note_names_the_one_to_read(ledger: Ledger) -> None:
    ledger.put(
        make_document("old.md", "boat\n"),
        replace(make_document("new.md", "ship\n"), superseding=(Superseding(True, ("old.md",)),)),
    )
    finding = solve(open_case(ledger, "boat", "old.md"))
    assert finding.verdict == "filtered"
    assert "superseded by new.md" in finding.explanation
    assert changes(finding) == [{"include_superseded": True}]


def test_anothers_note_is_told_by_its_scope_alone(ledger: Ledger) -> None:
    ledger.put(replace(make_document("bob.md", "the secret zeppelin\n", heading="Hideout"), scope="user:bob"))
    told = [
        solve(open_case(ledger, text, "bob.md", line=line, scope="user:ana"))
        for text in ("secret zeppelin", "kites")
        for line in (1, 99)
    ]
    assert told[0].verdict == "filtered"
    assert told[0].explanation == "Hidden by scope user:ana (the note is for user:bob)."
    assert changes(told[0]) == [{"scope": "user:bob"}]
    assert told[0].remedies[0].place is None
    assert all(each == told[0] for each in told), "neither the query's words nor the line make a difference"
    assert not told[0].legs
    assert (told[0].words, told[0].chunk, told[0].place) == (None, None, None)


def test_note_whose_scope_cannot_be_told_is_shown_without_one(ledger: Ledger) -> None:
    ledger.put(replace(make_document("odd.md", "boat\n"), scope="unknown"))
    assert changes(solve(open_case(ledger, "boat", "odd.md", scope="user:ana"))) == [{"scope": None}]


# -- no such line ----------------------------------------------------------------------------------------------------


def test_line_past_the_end_is_told_with_the_length(ledger: Ledger) -> None:
    put_boats(ledger, 1)
    finding = solve(open_case(ledger, "boat", "1.md", line=2))
    assert (finding.verdict, finding.explanation) == ("no_such_line", "1.md has 1 line; there is no line 2.")


def test_file_without_text_has_no_lines(ledger: Ledger) -> None:
    ledger.put(make_document("empty.md"))
    assert "is empty" in solve(open_case(ledger, "boat", "empty.md")).explanation
