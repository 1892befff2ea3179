"""A fact as a file: read back as written, whatever its path and its words; and how long it lasts."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.front_matter import read_front_matter
from memoryd.jobs.ingest.aging import Uses, age_facts
from memoryd.jobs.ingest.answer import clean_text
from memoryd.jobs.ingest.fact import GONE, KEPT_DAYS, Fact, Origin, fact_id, read_fact, write_fact
from memoryd.jobs.ingest.folder import FactFolder, fact_path, folder_name
from memoryd.store.answers import Answers, Asked
from memoryd.store.errors import StoreCorrupt
from memoryd.store.globs import matches_any
from memoryd.store.lifespans import LIFESPANS
from tests.support.clock import SetClock

DAY = 86_400.0
NOW = 1_790_000_000.0


def make(text: str = "The heron nests in May.", **changes: object) -> Fact:
    origin = Origin("notes", "skills/birds.md", 3, 9, "ab" * 16)
    fact = Fact(fact_id("notes", "skills/birds.md", text), text, origin, "tool", ("birds",), "durable", NOW)
    return replace(fact, **changes)  # type: ignore[arg-type]


PATHS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
SENTENCES = st.text(st.characters(exclude_categories=("Cs",))).map(clean_text).filter(bool)


@given(PATHS, SENTENCES, st.sampled_from(sorted(LIFESPANS)))
def test_fact_is_read_back_as_it_was_written(path: str, text: str, decay: str) -> None:
    fact = make(text, decay=decay, origin=Origin("notes", path, 1, 2, "00"), used=NOW + DAY)
    assert read_fact(fact.id, write_fact(fact)) == fact


def test_front_matter_cannot_be_ended_by_what_a_path_says() -> None:
    fact = make(origin=Origin("notes", "a\n---\nscope: user:eve\n.md", 1, 2, "00"), scope="agent:coder")
    front_matter = read_front_matter(write_fact(fact))
    assert front_matter.problem is None
    assert front_matter.values["scope"] == "agent:coder"
    assert front_matter.values["origin"]["path"] == "a\n---\nscope: user:eve\n.md"
    assert front_matter.values["tags"] == ["ingest", "birds"]
    assert front_matter.values["source"] == "facts"


@pytest.mark.parametrize(
    "text", ["", "no front matter", "---\nsource: facts\n---\n", "---\norigin: x\ncreated: y\n---\nA\n"]
)
def test_file_that_is_no_fact_is_none(text: str) -> None:
    assert read_fact("0" * 16, text) is None


def test_same_statement_of_the_same_file_is_the_same_fact() -> None:
    assert fact_id("n", "a.md", "The Heron  nests.") == fact_id("n", "a.md", "the heron nests")
    assert fact_id("n", "a.md", "The heron nests.") != fact_id("n", "b.md", "The heron nests.")


@pytest.mark.parametrize(
    ("decay", "days"), [("permanent", None), ("durable", 90), ("normal", 30), ("short", 7), ("ephemeral", 1)]
)
def test_each_class_lasts_as_long_as_it_says(decay: str, days: int | None) -> None:
    fact = make(decay=decay)
    assert fact.expires == (None if days is None else NOW + days * DAY)
    assert not fact.expired(NOW + ((days or 10**6) * DAY) - 1)
    assert fact.expired(NOW + (days or 0) * DAY) is (days is not None)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOW)


@pytest.fixture
def answers(tmp_path: Path, clock: SetClock) -> Iterator[Answers]:
    with closing(Answers(tmp_path / "ingest.db", clock)) as answers:
        yield answers


@pytest.fixture
def folder(tmp_path: Path) -> FactFolder:
    return FactFolder(tmp_path / "facts")


def test_use_refreshes_only_the_classes_that_say_so_and_the_rest_expires(
    folder: FactFolder, answers: Answers, clock: SetClock
) -> None:
    facts = {decay: make(f"A {decay} fact is here.", decay=decay) for decay in LIFESPANS}
    for fact in facts.values():
        folder.write(fact)
    uses = Uses()
    uses.note([fact_path(fact) for fact in facts.values()], NOW + 0.5 * DAY)
    assert age_facts(folder, answers, uses.take(), NOW + 0.5 * DAY).refreshed == 0  # once a day is enough
    uses.note([fact_path(fact) for fact in facts.values()], NOW + 6 * DAY)
    aged = age_facts(folder, answers, uses.take(), NOW + 8 * DAY)
    assert (aged.refreshed, aged.expired) == (2, 2)
    left = {fact.decay: fact for fact in folder.read_all()}
    assert left.keys() == {"permanent", "durable", "normal"}
    assert left["normal"].expires == NOW + 36 * DAY
    assert left["permanent"].used is None
    assert age_facts(folder, answers, {}, NOW + 35 * DAY).expired == 0
    assert age_facts(folder, answers, {}, NOW + 36 * DAY).expired == 1
    assert age_facts(folder, answers, {}, NOW + 10_000 * DAY).expired == 1
    assert [fact.decay for fact in folder.read_all()] == ["permanent"]


def test_expired_fact_is_remembered_and_a_superseded_one_is_kept_for_a_while(
    folder: FactFolder, answers: Answers
) -> None:
    expiring, gone = make("This one expires soon.", decay="short"), make("This one lost its source.")
    folder.write(expiring)
    folder.write(replace(gone, superseded_by=GONE, superseded_at=NOW))
    age_facts(folder, answers, {}, NOW + 7 * DAY)
    assert answers.dismissed() == {(expiring.id, expiring.origin.piece)}
    assert [fact.id for fact in folder.read_all()] == [gone.id]
    age_facts(folder, answers, {}, NOW + KEPT_DAYS * DAY)
    assert folder.read_all() == []
    assert len(answers.dismissed()) == 1


def test_files_are_private_and_nothing_is_left_beside_them(folder: FactFolder) -> None:
    fact = make()
    folder.write(fact)
    file = folder.root / fact_path(fact)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == [f"{fact.id}.md"]
    assert folder.find(fact.id) == fact
    assert folder.find("../../etc/passwd") is None
    folder.remove(fact)
    assert folder.read("notes") == {}


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/:\0"), min_size=1, max_size=64))
def test_folder_of_a_workspace_is_a_plain_name_that_matches_only_itself(name: str) -> None:
    folder = folder_name(name)
    assert "/" not in folder
    assert not folder.startswith(".")
    assert len(folder) <= 120
    assert matches_any(f"{folder}/x.md", [f"{folder}/*.md"])
    assert not set("*?[") & set(folder)
    assert folder == folder_name(name)


def test_answers_outlive_the_process_and_are_counted_by_day(tmp_path: Path, clock: SetClock) -> None:
    answers = Answers(tmp_path / "ingest.db", clock)
    asked = Asked("m", "1", "p")
    assert answers.find(asked) is None
    answers.keep(asked, "{}", 70)
    assert answers.tokens_today() == 70
    answers.close()
    again = Answers(tmp_path / "ingest.db", clock)
    assert again.find(asked) == "{}"
    assert again.find(Asked("other", "1", "p")) is None
    clock.now += 2 * DAY
    assert again.tokens_today() == 0
    assert again.prune(1) == 1
    assert again.find(asked) is None
    again.close()


def test_damaged_store_of_answers_is_told_of_and_begun_anew(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "ingest.db"
    told: list[StoreCorrupt] = []
    answers = Answers(path, clock, told.append)
    answers.keep(Asked("m", "1", "p"), "x" * 10_000, 1)
    answers.close()
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 8192)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with pytest.raises(StoreCorrupt), closing(Answers(path, clock, told.append)) as damaged:
        damaged.find(Asked("m", "1", "p"))
    answers.begin_anew(path.unlink)
    with closing(answers):
        assert answers.find(Asked("m", "1", "p")) is None
