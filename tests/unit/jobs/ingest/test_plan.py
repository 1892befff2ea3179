"""What becomes of a file's facts, and which say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from memoryd.jobs.ingest.answer import Parsed, Statement
from memoryd.jobs.ingest.duplicates import Known, telling
from memoryd.jobs.ingest.fact import GONE, Fact
from memoryd.jobs.ingest.pieces import Piece
from memoryd.jobs.ingest.plan import Place, Plan, plan_file, wanted_facts
from memoryd.store.protocols import Vectors

NOW = 1_790_000_000.0
NOTHING: frozenset[tuple[str, str]] = frozenset()


def embed(texts: Sequence[str]) -> Mapping[str, Vectors]:
    """By the set of letters: sentences of nearly the same letters are near."""
    found = {}
    for text in texts:
        vector = np.array([text.casefold().count(chr(97 + place)) for place in range(26)], dtype=np.float32)
        found[text] = vector / np.linalg.norm(vector)
    return found


def wanted(*texts: str, path: str = "skills/a.md", scope: str = "global", line: int = 1) -> dict[str, Fact]:
    piece = Piece(" ".join(texts), "", line, line, 1)
    statements = tuple(Statement(text) for text in texts)
    return wanted_facts(Place("notes", path, scope), [(piece, Parsed(statements))], "durable", NOW)


def plan(
    new: dict[str, Fact],
    existing: dict[str, Fact] | None = None,
    known: Known | None = None,
    **more: frozenset[tuple[str, str]],
) -> Plan:
    known = known or Known(lambda _: {}, 0.92)
    known.add(fact for fact in (existing or {}).values() if not fact.superseded_by)
    return plan_file(new, existing or {}, known, more.get("dismissed", NOTHING), NOW + 5)


def test_first_run_stores_everything_and_the_second_nothing() -> None:
    facts = wanted("The lamp is lit at dusk.", "The key is in the box.")
    assert plan(facts).new == tuple(facts.values())
    again = plan(facts, facts)
    assert again.writes == ()
    assert again.kept == 2


def test_statement_that_moved_keeps_its_age_and_its_owner_s_words() -> None:
    (fact,) = wanted("The lamp is lit at dusk.").values()
    edited = replace(fact, text="The lamp is lit at dusk, by hand.", created=NOW - 100)
    (moved,) = plan(wanted("The lamp is lit at dusk.", line=9), {fact.id: edited}).changed
    assert moved == replace(edited, origin=moved.origin)
    assert moved.origin.start_line == 9


def test_statement_that_is_gone_is_superseded_by_the_most_like_it() -> None:
    before = wanted("The lamp is lit at dusk.", "The boats are counted at noon.")
    made = plan(wanted("The lamp is lit at dawn."), before)
    by = {fact.text: fact.superseded_by for fact in made.superseded}
    assert by == {"The lamp is lit at dusk.": f"{made.new[0].id}.md", "The boats are counted at noon.": GONE}
    assert all(fact.superseded_at == NOW + 5 for fact in made.superseded)


def test_statement_that_comes_back_holds_again() -> None:
    (fact,) = wanted("The lamp is lit at dusk.").values()
    out = replace(fact, superseded_by=GONE, superseded_at=NOW)
    made = plan({fact.id: fact}, {fact.id: out})
    assert made.changed == (fact,)
    assert plan({}, {fact.id: out}).writes == ()  # superseded once is enough


def test_forgotten_fact_stays_away_and_an_expired_one_until_its_piece_changes() -> None:
    (fact,) = wanted("The lamp is lit at dusk.").values()
    assert plan({fact.id: fact}, dismissed=frozenset({(fact.id, "")})).dismissed == 1
    assert plan({fact.id: fact}, dismissed=frozenset({(fact.id, fact.origin.piece)})).new == ()
    assert plan({fact.id: fact}, dismissed=frozenset({(fact.id, "another piece")})).new == (fact,)


def test_same_words_from_another_file_are_a_duplicate_but_not_for_who_may_not_see_the_first() -> None:
    known = Known(lambda _: {}, 0.92)
    first = plan(wanted("The lamp is lit at dusk.", scope="agent:coder"), known=known)
    assert len(first.new) == 1
    assert plan(wanted("the lamp is lit at DUSK", path="b.md", scope="agent:coder"), known=known).duplicates == 1
    assert len(plan(wanted("The lamp is lit at dusk.", path="c.md"), known=known).new) == 1
    assert plan(wanted("The lamp is lit at dusk.", path="d.md", scope="agent:other"), known=known).duplicates == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The lamp is lit at dusk.", "At dusk the lamp is lit.", True),
        ("The port is 8080.", "The port is 8081.", False),
        ("The lamp is lit at dusk.", "The lamp is not lit at dusk.", False),
        ("The lamp is lit at dusk.", "Boats are counted at noon by Ida.", False),
    ],
)
def test_sentences_that_mean_the_same_are_duplicates_unless_a_number_or_a_not_differs(
    one: str, other: str, same: bool
) -> None:
    made = plan(wanted(one, other), known=Known(embed, 0.92))
    assert made.duplicates == int(same)
    assert plan(wanted(one, other), known=Known(embed, 1.0)).duplicates == 0  # by words alone


def test_what_must_agree_word_by_word() -> None:
    assert telling("Run `make x` on port 80, never twice") == {"`make x`", "80", "never"}
