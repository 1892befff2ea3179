from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.folding import FOLD_VERSION, fold, split_words, words


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("Hello", "hello"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ＡＢＣ１２３", "abc123"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("ﬁne", "fine"),
        ("e\u0301", "é"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("a\0b", "a b"),
        ("会议", "会议"),
        ("", ""),
    ],
)
def test_forms_of_the_same_text_become_one(written: str, folded: str) -> None:
    assert fold(written) == folded


def test_case_never_matters_for_any_letter_but_the_turkish_dotless_i() -> None:
    letters = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isalpha()]
    assert [letter for letter in letters if fold(letter.lower()) != fold(letter)] == []
    assert [letter for letter in letters if fold(letter.upper()) != fold(letter)] == ["ı"]


def test_folding_what_is_folded_changes_nothing_for_any_character() -> None:
    everything = map(chr, range(sys.maxunicode + 1))
    assert [character for character in everything if fold(once := fold(character)) != once] == []


@given(st.text())
def test_no_nul_is_left_for_sqlite_to_stop_at(text: str) -> None:
    assert "\0" not in fold(text)


def test_version_names_the_unicode_tables_that_folding_depends_on() -> None:
    assert unicodedata.unidata_version in FOLD_VERSION


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Snake_case, x1!", ["snake_case", "x1"]),
        ("हिन्दी में खोज", ["हिन्दी", "में", "खोज"]),  # vowels are marks
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        ("שָׁלוֹם", ["שלום"]),  # with its points as without
        ("مُحَمَّد مـحـمـد", ["محمد", "محمد"]),
        ("می‌خواهم", ["میخواهم"]),  # drawn apart by a character that nobody sees
        ("Οδοντίατρος οδοντιάτρου", ["οδοντιατροσ", "οδοντιατρου"]),  # its accent moves
        ("свёкла свекла", ["свекла", "свекла"]),
        ("step 1️⃣ ❤️ done", ["step", "1", "done"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("한국어 abc", ["한국", "국어", "abc"]),
    ],
)
def test_words_are_whole_in_every_script(text: str, found: list[str]) -> None:
    assert split_words(text) == found
    assert set(found) <= set(words(text).split())
