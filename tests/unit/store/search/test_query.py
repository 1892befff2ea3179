from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.store.folding import fold
from memoryd.store.search.query import build_query


@pytest.fixture(scope="module")
def fts() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'trigram')")
    yield connection
    connection.close()


def rows_matching(fts: sqlite3.Connection, query: str, text: str) -> int:
    """How many rows FTS5 finds where this text is the only one."""
    expression = " OR ".join(build_query(query).phrases)
    if not expression:
        return 0
    fts.execute("DELETE FROM texts")
    fts.execute("INSERT INTO texts VALUES (?)", (fold(text),))
    return len(fts.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,)).fetchall())


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("deploy the server", ("deploy", "the", "server")),
        ("Deploy DEPLOY", ("deploy",)),
        ('"unbalanced', ("unbalanced",)),
        ('say "hello" now', ("say", "hello", "now")),
        ("alpha AND (beta", ("alpha", "and", "beta")),
        ("NEAR(abc)", ("near(abc",)),
        ("text:secret", ("text:secret",)),
        ("pre* -minus +plus ^caret", ("pre", "minus", "plus", "caret")),
        ("C++", ("c++",)),
        ("(C++).", ("c++",)),
        ("2026.4.10", ("2026.4.10",)),
        ("snake_case", ("snake_case",)),
        ("__init__", ("__init__",)),
        ("--no-cache", ("no-cache",)),
        ("/etc/hosts,", ("etc/hosts",)),
        ("memory/2026-11-15.md", ("memory/2026-11-15.md",)),
        ("Melanie’s dock isn't what's open", ("melanie", "dock", "what", "open")),
        ("I've read that they won't or can't pay; it'll be Ann's", ("read", "that", "they", "can", "pay", "ann")),
        ("what's on?", ("what's",)),  # there is nothing else
        ("O'Neil, rock'n'roll, aujourd'hui", ("o'neil", "rock'n'roll", "aujourd'hui")),
        ("a\0bcd", ("bcd",)),
        ("naïve café", ("naïve", "café")),
        ("ＦＵＬＬ", ("full",)),
        ("🎉🎉🎉", ("🎉🎉🎉",)),
        ('""" "', ('"""',)),
    ],
)
def test_words_become_terms(query: str, terms: tuple[str, ...]) -> None:
    assert build_query(query).terms == terms


@pytest.mark.parametrize(
    ("query", "short"),
    [
        ("a b", ("a", "b")),
        ("go?", ("go",)),
        ("C#", ("c#",)),
        ("会议", ("会议",)),
        ("水", ("水",)),
        ("🎉", ("🎉",)),
        ("회의", ("회의",)),
        ("会议 AI", ("会议", "ai")),
        ("?", ("?",)),
    ],
)
def test_terms_too_short_for_the_index_are_kept_apart(query: str, short: tuple[str, ...]) -> None:
    assert build_query(query).short == short
    assert build_query(query).terms == ()
    assert build_query(query).phrases == ()


@pytest.mark.parametrize(
    ("query", "lone"),
    [
        ("卵のサイズはどれくらい", ["卵"]),  # a word of one character, and a particle
        ("5度目の大西洋横断", []),  # beside another ideograph it is part of a word
        ("谷とはどこ", ["谷"]),
        ("项目会议", []),
    ],
)
def test_ideograph_between_kana_is_a_word_of_its_own(query: str, lone: list[str]) -> None:
    assert [word for word in build_query(query).words if len(word) == 1 and not word.isdigit()] == lone


def test_unspaced_scripts_become_overlapping_trigrams() -> None:
    assert build_query("项目会议记录").terms == ("项目会", "目会议", "会议记", "议记录")
    assert build_query("会議録").terms == ("会議録",)
    assert build_query("ภาษาไทย").terms[:2] == ("ภาษ", "าษา")


def test_scripts_are_told_apart_within_a_word() -> None:
    query = build_query("Python脚本 v2版本号")
    assert query.terms == ("python", "版本号")
    assert query.short == ("脚本", "v2")


def test_words_that_are_not_adjacent_are_found(fts: sqlite3.Connection) -> None:
    assert rows_matching(fts, "备份数据库策略", "这个策略是：数据库每天备份") == 1


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\0"])
def test_nothing_asked_is_nothing_sought(query: str) -> None:
    assert (build_query(query).terms, build_query(query).short) == ((), ())


@pytest.mark.parametrize(
    "query",
    [
        '"unbalanced',
        "a AND (b",
        "foo AND (bar",
        "NEAR(foo bar, 2)",
        "NEAR(x)",
        "C++",
        "2026.4.10",
        "snake_case",
        "--no-cache",
        "/usr/local/bin",
        "C:\\Users\\me",
        "heading:foo",
        "{heading text}:foo",
        "foo*",
        "^foo",
        "NOT foo",
        "foo OR",
        "''' ;DROP TABLE texts",
        "🎉🎉🎉 party",
        "nul\0inside",
    ],
)
def test_syntax_of_fts5_never_leaks(fts: sqlite3.Connection, query: str) -> None:
    assert rows_matching(fts, query, f"before {query} after") == (1 if build_query(query).terms else 0)


CONTRACTIONS = st.lists(st.sampled_from(["'", "’", "d", "s", "n't", "can", "won", "do", "ve", " ", ":", ".", "b"]))


@settings(max_examples=300)
@given(st.text(max_size=40) | st.text("\"'()*:^-+ {}ANDORNTEab,.", max_size=40) | CONTRACTIONS.map("".join))
def test_any_text_is_a_query_that_finds_itself(fts: sqlite3.Connection, text: str) -> None:
    query = build_query(text)
    assert all(len(term) >= 3 for term in query.terms)
    assert all(0 < len(term) < 3 for term in query.short)
    assert rows_matching(fts, text, text) == (1 if query.terms else 0)


@pytest.mark.parametrize(
    "query",
    [
        "word " * 20_000,
        " ".join(f"word{number}" for number in range(12_000)),
        "x" * 100_000,
        "a" + "-" * 100_000 + "a",
        "-" * 100_000,
        "会" * 50_000 + "议",
        "".join(chr(0x4E00 + number % 20_000) for number in range(100_000)),
        '"' * 100_000,
    ],
    ids=["one word", "many words", "long word", "dashes inside", "dashes", "one ideograph", "ideographs", "quotes"],
)
def test_pasted_page_is_a_query_of_bounded_cost(fts: sqlite3.Connection, query: str) -> None:
    began = time.process_time()
    built = build_query(query)
    assert rows_matching(fts, query, query[:1000]) == 1
    assert time.process_time() - began < 5  # quadratic work on 100 kB takes minutes
    assert len(built.terms) <= 64
    assert max(map(len, built.terms)) <= 128
