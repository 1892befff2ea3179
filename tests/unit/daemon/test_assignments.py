"""Settings typed on the command line."""

from __future__ import annotations

import pytest

from memoryd.daemon.commands.assignments import search_table, split_assignments, whole_key
from memoryd.daemon.config_schema import SETTINGS
from memoryd.daemon.live_settings import SEARCH_SETTINGS
from memoryd.store.errors import InvalidParams


@pytest.mark.parametrize("key", SEARCH_SETTINGS)
def test_key_of_search_may_be_written_short_or_whole(key: str) -> None:
    assert whole_key(key) == whole_key(f"search.{key}") == f"search.{key}"


def test_every_other_key_is_written_whole() -> None:
    assert all(whole_key(key) == key for key in SETTINGS)
    assert whole_key("chunk_tokens") == "chunk_tokens"


def test_table_that_can_be_enabled_stands_for_that() -> None:
    assert split_assignments(["mmr=on", "search.hyde=no"]) == {"search.mmr.enabled": "on", "search.hyde.enabled": "no"}


def test_texts_become_values_in_their_tables() -> None:
    typed = ["fusion=rrf", "search.weights.vector=0", "weights.words=1e1", "mmr=on", "rrf_k= 20 ", "limit=many"]
    assert search_table(typed) == {
        "fusion": "rrf",
        "weights": {"vector": 0.0, "words": 10.0},
        "mmr": {"enabled": True},
        "rrf_k": 20,
        "limit": "many",  # for the daemon to refuse, as it would from anybody
    }


def test_the_last_of_two_counts() -> None:
    assert search_table(["limit=3", "search.limit=4"]) == {"limit": 4}


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("fusion", "fusion: no value"),
        ("", "no value"),
        ("rrfk=3", "did you mean search.rrf_k?"),
        ("search.weight.vector=3", "did you mean search.weights.vector?"),
        ("weights=3", "weights: unknown"),
        ("index.chunk_tokens=300", "read when memoryd starts"),
    ],
)
def test_what_is_no_setting_of_search_is_refused(typed: str, told: str) -> None:
    with pytest.raises(InvalidParams, match=told.replace("?", r"\?")) as caught:
        search_table([typed])
    assert caught.value.hint
