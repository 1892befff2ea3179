"""Whatever is replaced, skipped and forgotten, in whatever order: the ledger stays consistent."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memoryd.store.errors import StoreCorrupt
from tests.support.documents import make_document
from tests.support.ledger import Ledger, check_ledger, open_ledger

PATHS = st.sampled_from(["a.md", "b.md", "c.md"])
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["alpha\n", "beta\n", "gamma delta\n", "会议记录\n", "---\n", "Ünïcödé\n"]),
        st.text(max_size=8),
    ),
    max_size=6,
)
HEADINGS = st.sampled_from(["", "Plan", "Plan > Détails"])


class DocumentsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.opened = open_ledger(Path(self.folder.name) / "ledger.db")
        self.ledger = self.opened.__enter__()
        self.expected: dict[str, list[str]] = {}  # path -> texts of its chunks, in order

    def teardown(self) -> None:
        self.opened.__exit__(None, None, None)
        self.folder.cleanup()

    @rule(path=PATHS, texts=TEXTS, heading=HEADINGS, width=st.integers(1, 3), first_line=st.integers(1, 3))
    def replace(self, path: str, texts: list[str], heading: str, width: int, first_line: int) -> None:
        spans = [(start, min(start + width, len(texts)) - 1) for start in range(len(texts))]
        spans = [span for place, span in enumerate(spans) if place == 0 or span[1] > spans[place - 1][1]]
        self.ledger.put(make_document(path, *texts, chunks=spans, heading=heading, first_line=first_line))
        self.expected[path] = ["".join(texts[first : last + 1]) for first, last in spans]

    @rule(path=PATHS)
    def forget(self, path: str) -> None:
        assert self.ledger.documents.forget("home", path, 0.0) == (path in self.expected)
        self.expected.pop(path, None)

    @rule(path=PATHS)
    def skip(self, path: str) -> None:
        self.ledger.documents.skip(make_document(path), "not text", 0.0)
        self.expected[path] = []

    @invariant()
    def ledger_is_consistent(self) -> None:
        check_ledger(self.ledger.database)

    @invariant()
    def ledger_says_what_was_put_in(self) -> None:
        with self.ledger.database.read() as sql:
            rows = sql.execute(
                "SELECT d.path, t.text FROM chunks c JOIN chunk_texts t USING (id)"
                " JOIN documents d ON d.id = c.document_id ORDER BY d.path, c.ordinal"
            ).fetchall()
        assert rows == [(path, text) for path in sorted(self.expected) for text in self.expected[path]]
        assert set(self.ledger.documents.known("home")) == set(self.expected)


DocumentsMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=12)
TestDocuments = DocumentsMachine.TestCase


def test_the_check_notices_an_index_that_differs_from_its_text(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "alpha\n"))
    with ledger.database.write() as sql:
        sql.execute("UPDATE passages SET text = 'other words'")
    with pytest.raises(StoreCorrupt):
        check_ledger(ledger.database)
