"""Whatever the notes, the query and the settings: a finding is true, and what it proposes holds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.store.errors import EmbedderUnavailable
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.answer import Answer
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import Decay, Mmr, SearchQuery, SearchSettings
from memoryd.store.search.why_not.case import Case, Remembered
from memoryd.store.search.why_not.diagnosis import find_reason
from memoryd.store.search.why_not.target import read_target
from tests.support.documents import make_document
from tests.support.ledger import open_ledger

TODAY = date(2026, 11, 15)
VOCABULARY = ("boat", "sail", "kite", "harbour", "noon", "red")
texts = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5).map(lambda words: f"{' '.join(words)}\n")
notes = st.tuples(
    st.lists(texts, min_size=1, max_size=3),
    st.none() | st.integers(0, 200),
    st.sampled_from(["global", "user:ana", "user:bob"]),
)
queries = st.builds(
    SearchQuery,
    text=texts.map(str.strip),
    today=st.just(TODAY),
    limit=st.integers(1, 4),
    min_score=st.sampled_from([0.0, 0.3, 0.9]),
    scope=st.sampled_from([None, None, "user:ana"]),
    after=st.sampled_from([None, None, TODAY - timedelta(days=40)]),
    exclude=st.sampled_from([(), (), ("0.md",)]),
)
searches = st.builds(
    SearchSettings,
    candidates=st.integers(1, 8),
    fusion=st.sampled_from(["weighted", "rrf"]),
    weights=st.sampled_from(
        [{"words": 1.0, "trigram": 0.5, "vector": 0.0}, {"words": 1.0, "trigram": 0.0, "vector": 0.0}]
    ),
    decay=st.sampled_from([Decay(strength=0.0), Decay(strength=1.0)]),
    mmr=st.sampled_from([Mmr(), Mmr(enabled=True, relevance=0.4)]),
)


class Nothing:
    """A vector side that is not there; only a remedy that turns it on would ask it."""

    fingerprint: str | None = None  # as the ledger says

    def knows_query(self, text: str) -> bool:
        return False

    def embed_query(self, text: str) -> Vectors:
        raise EmbedderUnavailable

    def embed_passage(self, text: str) -> Vectors:
        raise EmbedderUnavailable

    def index(self) -> VectorIndex:
        raise EmbedderUnavailable


@settings(max_examples=25)
@given(st.lists(notes, min_size=1, max_size=6), queries, searches)
def test_verdict_is_true_and_remedies_hold(
    memory: Sequence[tuple[list[str], int | None, str]], query: SearchQuery, how: SearchSettings
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "ledger.db") as ledger:
        for number, (passages, age, scope) in enumerate(memory):
            written = None if age is None else TODAY - timedelta(days=age)
            spans = [(place, min(place + 1, len(passages) - 1)) for place in range(len(passages))]
            document = make_document(f"{number}.md", *passages, chunks=spans, written=written)
            ledger.put(replace(document, scope=scope))

        def ask(query: SearchQuery, how: SearchSettings) -> Answer:
            return search(query, how, ledger.database, Nothing(), lambda: [])

        shown = ask(query, how).hits
        for number, (passages, _, _) in enumerate(memory):
            for line in range(1, len(passages) + 1):
                with ledger.database.read() as sql:
                    target = read_target(sql, "home", f"{number}.md", line)
                assert target is not None
                case = Case(target, query, how, Remembered(ask), ledger.database)
                finding = find_reason(case)
                places = [
                    place
                    for place, hit in enumerate(shown, start=1)
                    if hit.path == f"{number}.md" and hit.start_line <= line <= hit.end_line
                ]
                assert (finding.verdict == "found") == bool(places)
                if places:
                    assert finding.place == places[0]
                for remedy in finding.remedies:
                    if remedy.place is not None:
                        assert case.changed(remedy.changes).spot().place == remedy.place
                if finding.verdict in ("limit", "min_score", "mmr", "decayed", "duplicate"):
                    assert finding.remedies, "what a leg brought can always be shown"
