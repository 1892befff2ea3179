"""Who forgets a fact and who writes it at the same moment: it is gone, whoever comes last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.jobs.ingest.aging import age_facts
from memoryd.jobs.ingest.fact import Fact
from memoryd.jobs.ingest.folder import FactFolder, fact_path
from memoryd.jobs.ingest.forgetting import forget_facts, forgotten, write_facts
from memoryd.store.answers import Answers
from tests.support.clock import SetClock
from tests.unit.jobs.ingest.test_fact import DAY, NOW, make


class Interrupted(FactFolder):
    """Something is done right before or right after a fact is written, as another thread would."""

    before: Callable[[], None] = staticmethod(lambda: None)
    after: Callable[[], None] = staticmethod(lambda: None)

    def write(self, fact: Fact) -> None:
        self.before()
        super().write(fact)
        self.after()


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    with closing(Answers(tmp_path / "ingest.db", SetClock(NOW))) as answers:
        yield answers


@pytest.fixture
def folder(tmp_path: Path) -> Interrupted:
    return Interrupted(tmp_path / "facts")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_fact_that_is_forgotten_while_it_is_written_is_gone(folder: Interrupted, answers: Answers, moment: str) -> None:
    fact, other = make(), make("The bittern booms in April.")
    setattr(folder, moment, lambda: forget_facts(FactFolder(folder.root), answers, [fact]))
    write_facts(folder, answers, [fact, other])
    assert [left.id for left in folder.read_all()] == [other.id]


def test_fact_that_is_forgotten_while_it_is_refreshed_is_gone(folder: Interrupted, answers: Answers) -> None:
    fact = make(decay="normal")
    folder.write(fact)
    folder.before = lambda: forget_facts(FactFolder(folder.root), answers, [fact])
    aged = age_facts(folder, answers, {fact.id: NOW + 6 * DAY}, NOW + 6 * DAY)
    assert aged.paths == (fact_path(fact),)
    assert folder.read_all() == []


def test_only_what_a_person_forgot_is_forgotten(folder: Interrupted, answers: Answers) -> None:
    """What expired is welcome again where another passage says it."""
    forgot, expired = make(), make("The bittern booms in April.", decay="short")
    write_facts(folder, answers, [forgot, expired])
    forget_facts(folder, answers, [forgot])
    age_facts(folder, answers, {}, NOW + 7 * DAY)
    assert forgotten(answers, [forgot, expired]) == [forgot]
