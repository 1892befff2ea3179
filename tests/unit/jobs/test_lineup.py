from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memoryd.jobs.heal import Healer
from memoryd.jobs.lineup import Lineup
from memoryd.jobs.meaning import Meaning
from memoryd.jobs.vector_tables import VectorTables
from memoryd.store.errors import StoreUnavailable
from memoryd.store.place import as_place
from memoryd.store.quarantine import Quarantine
from tests.support.documents import make_document
from tests.support.fake_embedder import FakeEmbedder
from tests.support.ledger import Ledger, open_ledger


@dataclass
class Stage:
    """A lineup on a real ledger and real tables."""

    ledger: Ledger
    lineup: Lineup
    left: list[object] = field(default_factory=list)

    def enter(self, fingerprint: str) -> Meaning:
        embedder = FakeEmbedder(dimension=4, fingerprint=fingerprint)
        generation = self.ledger.generations.register(
            embedder.identity, self.ledger.clock(), f"recipe of {fingerprint}"
        )
        return self.lineup.open(generation, embedder)

    def active(self) -> str | None:
        found = self.ledger.generations.active()
        return found.fingerprint if found else None


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with open_ledger(tmp_path / "ledger.db") as ledger:
        healer = Healer(Quarantine(tmp_path / "quarantine", ledger.clock), ledger.clock, lambda: None)
        tables = VectorTables(as_place(tmp_path / "vectors"), ledger.generations, ledger.queue, healer, "int8")
        left: list[object] = []
        lineup = Lineup(
            tables, ledger.generations, ledger.queue, ledger.clock, healer, on_left=lambda: left.append("left")
        )
        yield Stage(ledger, lineup, left)


def test_one_is_searched_and_another_filled_beside_it(stage: Stage) -> None:
    stage.ledger.put(make_document("a.md", "one\n"))
    first, second = stage.enter("first"), stage.enter("second")
    stage.lineup.serve(first)
    stage.ledger.generations.mark(first.generation.id, stage.ledger.passage_ids().values())
    assert stage.lineup.fill(second) == 1
    assert stage.lineup.in_use() == [first, second]
    assert stage.active() == "first"
    assert "fill" in stage.ledger.queue.waiting_kinds()
    assert not stage.lineup.is_filled()
    stage.ledger.generations.mark(second.generation.id, stage.ledger.passage_ids().values())
    assert stage.lineup.is_filled()


def test_a_switch_flips_the_row_and_lets_the_one_before_go(stage: Stage) -> None:
    first, second = stage.enter("first"), stage.enter("second")
    stage.lineup.serve(first)
    stage.lineup.fill(second)
    assert stage.lineup.is_filled()  # there is nothing to fill it with
    stage.lineup.finish_switch(second)
    assert stage.lineup.in_use() == [second]
    assert stage.active() == "second"
    assert stage.lineup.departures.embedders() == [first.embedder]
    assert stage.left == ["left"]


def test_what_was_given_up_is_not_flipped_to(stage: Stage) -> None:
    stage.ledger.put(make_document("a.md", "one\n"))
    first, second = stage.enter("first"), stage.enter("second")
    stage.lineup.serve(first)
    stage.lineup.fill(second)
    stage.lineup.stop_filling()
    stage.lineup.finish_switch(second)
    assert stage.lineup.in_use() == [first]
    assert stage.active() == "first"
    assert "fill" not in stage.ledger.queue.waiting_kinds()


def test_a_ledger_that_refuses_leaves_everything_as_it_was(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = stage.enter("first"), stage.enter("second")
    stage.lineup.serve(first)

    def refuse(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(stage.ledger.generations, "serve", refuse)
    with pytest.raises(StoreUnavailable):
        stage.lineup.serve(second)
    assert stage.lineup.in_use() == [first]
    assert stage.lineup.departures.embedders() == []


def test_without_a_model_words_are_searched_alone(stage: Stage) -> None:
    first, second = stage.enter("first"), stage.enter("second")
    stage.lineup.serve(first)
    stage.lineup.fill(second)
    stage.lineup.serve_none()
    assert stage.lineup.in_use() == []
    assert stage.active() is None
    assert set(stage.lineup.departures.embedders()) == {first.embedder, second.embedder}


def test_an_embedder_that_comes_back_is_not_closed(stage: Stage) -> None:
    first, second = stage.enter("first"), stage.enter("second")
    for meaning in (first, second, first):
        stage.lineup.serve(meaning)
    assert stage.lineup.departures.embedders() == [second.embedder]


def test_at_the_end_all_are_named_that_are_to_be_closed(stage: Stage) -> None:
    first, second, third = stage.enter("first"), stage.enter("second"), stage.enter("third")
    stage.lineup.serve(first)
    stage.lineup.serve(second)
    stage.lineup.fill(third)
    assert set(stage.lineup.clear()) == {first.embedder, second.embedder, third.embedder}
    assert stage.lineup.in_use() == []


def test_a_ledger_begun_anew_is_told_of_both(stage: Stage) -> None:
    first, second = stage.enter("first"), stage.enter("second")
    stage.lineup.serve(first)
    stage.lineup.fill(second)
    with stage.ledger.database.write() as sql:
        sql.execute("DELETE FROM generations")
    stage.lineup.follow_ledger()
    assert stage.active() == "first"
    assert [meaning.fingerprint for meaning in stage.lineup.in_use()] == ["first", "second"]
    assert {generation.fingerprint for generation in stage.ledger.generations.all()} == {"first", "second"}
