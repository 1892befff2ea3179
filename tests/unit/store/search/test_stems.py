from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.stems import stem


@pytest.mark.parametrize(
    "words",
    [
        "index indexes indexed indexing indexer",
        "deploy deploys deployed deploying deployment deployments",
        "plan plans planned planning planner",
        "embed embeds embedded embedding embeddings",
        "save saves saved saving",
        "migrate migrated migration migrations",
        "query queries queried",
        "bill bills billed billing",
        "status statuses",
        "class classes",
        "inform informed information",
    ],
)
def test_forms_of_one_word_are_one(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@pytest.mark.parametrize(
    "words",
    ["contract contrast", "party part", "state station", "star start", "port portal", "class clan", "thing the"],
)
def test_words_that_only_begin_alike_are_two(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 2


@pytest.mark.parametrize(
    "word", ["string", "bring", "analysis", "bus", "is", "s", "", "naïves", "борщ", "안녕하세요", "v2s"]
)
def test_short_and_foreign_words_stay_as_they_are(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize(
    ("word", "begins"), [("документами", "документа"), ("свёклой", "свёкл"), ("борща", "борщ"), ("θάλασσας", "θάλασσ")]
)
def test_word_of_another_alphabet_is_what_it_begins_with(word: str, begins: str) -> None:
    assert stem(word) == begins


@given(st.text("aeiostrndlgy", max_size=14))
def test_stem_of_a_stem_is_itself(word: str) -> None:
    assert stem(stem(word)) == stem(word)
