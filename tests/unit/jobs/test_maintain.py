"""Upkeep over a real ledger and a real cache, with no vectors in use."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from memoryd.jobs.maintain import Upkeep
from memoryd.store.cache import SqliteCache
from memoryd.store.keywords import TABLES, count_pages
from tests.support.clock import SetClock
from tests.support.documents import make_document
from tests.support.ledger import Ledger, open_ledger

DAY = 86_400.0
UNUSED = 2000  # embeddings that no passage uses; a small memory keeps 512 of them


class NoVectors:
    changing = nullcontext()

    def in_use(self) -> list[Any]:
        return []

    def convertible(self) -> list[Any]:
        return []


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def cache(tmp_path: Path, clock: SetClock) -> Iterator[SqliteCache]:
    opened = SqliteCache(tmp_path / "embeddings.db", clock)
    yield opened
    opened.close()


def upkeep_of(ledger: Ledger, cache: SqliteCache) -> Upkeep:
    return Upkeep(
        ledger.database,
        cast("Any", NoVectors()),
        ledger.generations,
        cache,
        shared_cache=False,
        stopping=lambda: False,
    )


def drop(ledger: Ledger, cache: SqliteCache, *runs: object) -> list[int]:
    """What each run of one upkeep drops; what is called stands between two of them."""
    upkeep = upkeep_of(ledger, cache)
    dropped = []
    for between in (None, *runs):
        if callable(between):
            between()
        dropped.append(upkeep.run()["embeddings_dropped"])
    return dropped


def keep_unused(cache: SqliteCache) -> None:
    vector = np.array([1.0, 0.0], np.float32)
    cache.keep("f1", {number.to_bytes(16, "big"): vector for number in range(UNUSED)})


def test_cache_is_held_against_the_passages_when_they_have_changed(ledger: Ledger, cache: SqliteCache) -> None:
    ledger.put(make_document("a.md", "one\n"))
    runs = (
        lambda: keep_unused(cache),  # nothing has changed: no passage is read for it
        lambda: ledger.put(make_document("a.md", "two\n")),  # in the rows of the one before
    )
    assert drop(ledger, cache, *runs) == [0, 0, UNUSED - 512]


def test_cache_is_held_against_the_passages_once_a_day_all_the_same(
    ledger: Ledger, cache: SqliteCache, clock: SetClock
) -> None:
    ledger.put(make_document("a.md", "one\n"))
    runs = (lambda: keep_unused(cache), lambda: clock.move(DAY))
    assert drop(ledger, cache, *runs) == [0, 0, UNUSED - 512]


def wordy(name: str) -> str:
    """Words that nothing else has: pages of the keyword indexes."""
    return " ".join(hashlib.blake2b(f"{name} {number}".encode()).hexdigest()[:12] for number in range(500))


def test_words_of_what_came_and_went_between_two_runs_are_not_kept(ledger: Ledger, cache: SqliteCache) -> None:
    """Its chunks' ids are given again, so no id tells of it."""
    upkeep = upkeep_of(ledger, cache)

    def pages() -> int:
        with ledger.database.read() as sql:
            return sum(count_pages(sql, table) for table in TABLES)

    ledger.put(*(make_document(f"{number}.md", wordy(f"kept {number}")) for number in range(60)))
    assert upkeep.run()["keywords_merged"] == 60
    merged = pages()
    for round_ in range(3):
        passing = [f"passing-{number}.md" for number in range(40)]
        ledger.put(*(make_document(path, wordy(f"{round_} {path}")) for path in passing))
        for path in passing:
            ledger.documents.forget("home", path, ledger.clock())
    assert pages() > 1.5 * merged
    assert upkeep.run()["keywords_merged"] == 60
    assert pages() <= 1.05 * merged
    assert "keywords_merged" not in upkeep.run()
