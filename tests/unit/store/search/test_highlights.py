from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.highlights import Marker

TEXTS = st.text(max_size=80) | st.text("ab de's-_ \n", max_size=80) | st.text("会议のはｶﾞ👩‍👧é\u0301ßİﬁ가 ", max_size=80)


def marked(query: str, text: str) -> str:
    """The text with brackets around what is marked."""
    shown, last = "", 0
    for start, end in Marker(query).mark(text):
        shown += f"{text[last:start]}[{text[start:end]}]"
        last = end
    return shown + text[last:]


@given(TEXTS, TEXTS)
def test_marks_are_in_order_apart_and_inside_the_text(query: str, text: str) -> None:
    spans = Marker(query).mark(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))


@given(st.text("bcdfghjk", min_size=3, max_size=9), TEXTS, TEXTS)  # no vowels: no function word, which is not marked
def test_word_of_the_query_is_marked_wherever_it_stands(word: str, before: str, after: str) -> None:
    text = f"{before} {word} {after}"
    place = len(before) + 1
    assert any(start <= place and place + len(word) <= end for start, end in Marker(f"xyzzy {word}").mark(text))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # case, width, accents
        ("goats", "The [GOATS] ate."),
        ("ＡＢＣ ﬁle", "[abc] [file] [ＡＢＣ] [ﬁles]"),
        ("résumé", "[RESUME], [Résumé], [re\u0301sume\u0301]"),
        ("resume", "[Résumé]"),
        ("STRASSE", "die [Straße]"),
        # endings
        ("indexing notes", "We [indexed] the [Note], not [noted]. [INDEX]"),
        ("contract", "the contrast, the [contracts]"),
        # parts of words, where there is no word
        ("base", "the data[base]"),
        ("base", "the database [base]"),
        ("speicher", "Arbeits[speicher]"),
        ("документ", "[документы]"),
        ("кот и борщ", "[кот], который ел [борщ], а не борщевиками"),  # what only begins so is another word
        ("где лежит борщ и как", "[Борщ] и где он лежал"),
        ("свёклой", "[свёкла] и [Свёклу]"),
        ("كتاب", "ال[كتاب]"),
        # what is joined
        ("C++ F#", "[c++] or [F#], not C"),
        ("--no-cache 2026.4.10", "`--[no-cache]`, v[2026.4.10], 4, 10, 2026, no"),
        ("snake_case", "[snake_case], [snake]"),
        ("step 4", "[step] [4] of 14"),
        ("memory/notes.md", "see [memory/notes.md]"),
        # scripts without spaces
        ("会议什么时候开", "下次[会议]是[什么时候]？会 议"),
        ("猫", "黒[猫]と[猫]"),
        ("データベースの移行", "[データベース]を[移行]した。ケース。[データ]"),
        ("会議はいつですか", "次の[会議]、三時です。"),
        ("すし", "[すし]が好き"),
        ("ｶﾞﾗｽ", "[ガラス] [ｶﾞﾗｽ]"),
        ("회의 일정", "[회의]는 언제? [일정]표"),
        ("ประชุม", "การ[ประชุม]วันนี้"),
        ("GPU显存", "[gpu] [显存]不足"),
        # and with
        ("हिंदी भाषा", "मैं [हिंदी] [भाषा] बोलता"),
        # function words
        ("why did the goat", "Why did the [goats] eat"),
        ("what is it", "[What] [is] [it]? [It] [is] this."),
        ("the", "[The] then"),
        # symbols
        ("🎉", "party [🎉] time"),
        ("--", "a [--] b"),
        ("", "nothing"),
        ("  ", "not hing"),
    ],
)
def test_what_was_asked_for_is_marked(query: str, expected: str) -> None:
    text = expected.replace("[", "").replace("]", "")
    assert marked(query, text) == expected


def test_places_are_code_points() -> None:
    assert Marker("goat").mark("👩‍👧 é goat") == ((6, 10),)


def test_mark_covers_whole_characters_as_a_reader_sees_them() -> None:
    text = "cafe\u0301s"
    assert Marker("cafe").mark(text) == ((0, len(text)),)


def test_pasted_page_is_a_query_too() -> None:
    assert marked(" ".join(f"word{number}" for number in range(5000)), "word3") == "[word3]"


def test_terms_are_found_in_each_text_as_often_as_they_stand_there() -> None:
    found = Marker("goats eat C++ 会议").find_terms(["A goat and goats.", "Eating c++", "下次会议", "the"])
    assert found == [["goats", "goats"], ["c++", "eat"], ["会议"], []]


def test_term_inside_a_word_counts_only_where_no_text_has_the_word() -> None:
    assert Marker("art").find_terms(["start", "art"]) == [[], ["art"]]
    assert Marker("art").find_terms(["start", "other"]) == [["art"], []]
