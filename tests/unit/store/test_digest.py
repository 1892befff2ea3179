"""The root digest: the same for the same facts in any order, another for any other fact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.digest import LedgerFacts, digest_document, digest_ledger, digest_root

words = st.text(max_size=8)
numbers = st.integers(0, 2**62)
passages = st.lists(st.tuples(numbers, numbers, st.booleans(), numbers, numbers), max_size=4, unique=True).map(tuple)
chunks = st.lists(st.tuples(numbers, words, numbers, numbers, words, numbers, numbers), max_size=4, unique=True).map(
    tuple
)
facts = st.builds(
    LedgerFacts,
    workspace=words,
    path=words,
    content_hash=words.filter(lambda word: not word.startswith("unread:")),
    about=st.tuples(words, numbers, st.none() | words),
    superseding=st.lists(st.tuples(numbers, numbers, numbers), max_size=3, unique=True).map(tuple),
    passages=passages,
    chunks=chunks,
)
roots = st.dictionaries(st.tuples(words, words), words, max_size=6)


@given(facts, st.randoms())
def test_order_of_rows_does_not_matter(fact: LedgerFacts, random: Any) -> None:
    def shuffled(rows: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(random.sample(rows, len(rows)))

    other = replace(fact, passages=shuffled(fact.passages), chunks=shuffled(fact.chunks))
    assert digest_ledger(other) == digest_ledger(fact)


@given(facts, st.sampled_from(["workspace", "path", "content_hash"]))
def test_every_name_matters(fact: LedgerFacts, name: str) -> None:
    assert digest_ledger(replace(fact, **{name: getattr(fact, name) + "x"})) != digest_ledger(fact)


@given(facts, st.sampled_from(["about", "superseding", "passages", "chunks"]), st.data())
def test_every_row_and_every_value_in_it_matters(fact: LedgerFacts, name: str, data: st.DataObject) -> None:
    rows = getattr(fact, name)
    assert digest_ledger(replace(fact, **{name: (*rows, ("one", "more"))})) != digest_ledger(fact)
    if rows:
        place = data.draw(st.integers(0, len(rows) - 1))
        assert digest_ledger(replace(fact, **{name: (*rows[:place], *rows[place + 1 :])})) != digest_ledger(fact)
        assert digest_ledger(replace(fact, **{name: (*rows, rows[place])})) != digest_ledger(fact)
        row = rows[place]
        if isinstance(row, tuple):
            value = data.draw(st.integers(0, len(row) - 1))
            other = (*row[:value], f"{row[value]}!", *row[value + 1 :])
            assert digest_ledger(replace(fact, **{name: (*rows[:place], other, *rows[place + 1 :])})) != digest_ledger(
                fact
            )


@given(facts)
def test_stat_of_a_file_too_large_to_read_does_not_matter(fact: LedgerFacts) -> None:
    here = replace(fact, content_hash="unread:10:1:2:3:4")
    there = replace(fact, content_hash="unread:10:5:6:7:8")
    assert digest_ledger(here) == digest_ledger(there)
    assert digest_ledger(here) != digest_ledger(fact)


@given(words, st.lists(words, max_size=4), st.lists(numbers, max_size=4), st.randoms())
def test_keyword_faults_and_vectors_matter_and_their_order_does_not(
    ledger: str, faults: list[str], vectors: list[int], random: Any
) -> None:
    digest = digest_document(ledger, faults, vectors)
    assert digest == digest_document(ledger, random.sample(faults, len(faults)), random.sample(vectors, len(vectors)))
    assert digest != digest_document(f"{ledger}x", faults, vectors)
    assert digest != digest_document(ledger, [*faults, "one more"], vectors)
    assert digest != digest_document(ledger, faults, [*vectors, 1])


@given(roots, words, st.lists(words, max_size=3), st.randoms())
def test_root_depends_on_every_document_and_not_on_their_order(
    documents: dict[tuple[str, str], str], fingerprint: str, strays: list[str], random: Any
) -> None:
    root = digest_root(documents, fingerprint, strays)
    places = random.sample(list(documents), len(documents))
    assert root == digest_root({place: documents[place] for place in places}, fingerprint, strays[::-1])
    assert root != digest_root({**documents, ("a", "new document"): "x"}, fingerprint, strays)
    assert root != digest_root(documents, f"{fingerprint}x", strays)
    assert root != digest_root(documents, fingerprint, [*strays, "one more"])
    for place in places[:1]:
        rest = {other: digest for other, digest in documents.items() if other != place}
        assert root != digest_root(rest, fingerprint, strays)
        assert root != digest_root({**documents, place: documents[place] + "x"}, fingerprint, strays)


@given(st.tuples(words, words), st.tuples(words, words))
def test_names_are_never_run_together(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (one == other) == (digest_root({one: "d"}, "f", ()) == digest_root({other: "d"}, "f", ()))
