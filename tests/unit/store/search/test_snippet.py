from __future__ import annotations

import regex
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.answer import LegRank, Lines
from memoryd.store.search.highlights import Marker
from memoryd.store.search.snippet import ELLIPSIS, best_passage, cut_snippet, lines_of, mark_snippet

TEXTS = st.text(max_size=300) | st.text("ab \n", max_size=300) | st.text("会议👩‍👧é\u0301", max_size=120)


@st.composite
def cuts(draw: st.DrawFn) -> tuple[str, int, int, int]:
    text = draw(TEXTS)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, len(text)))
    return text, start, end, draw(st.integers(1, 120))


@given(cuts())
def test_snippet_is_part_of_the_text_and_never_longer_than_the_limit_and_two_marks(
    cut: tuple[str, int, int, int],
) -> None:
    text, start, end, limit = cut
    snippet, at = cut_snippet(text, start, end, limit)
    assert len(snippet) <= limit + 2
    # with no mark, one before, one after, or both
    assert any(text.startswith(part, at) for part in (snippet, snippet[1:], snippet[:-1], snippet[1:-1]))


def test_short_text_is_shown_whole() -> None:
    assert cut_snippet("all of it\n", 0, 3, 100) == ("all of it", 0)
    assert cut_snippet("\n\n  all of it\n", 0, 3, 100) == ("  all of it", 2)


def test_best_passage_is_in_the_snippet() -> None:
    text = "before it\n" * 50 + "the best passage\n" + "after it\n" * 50
    start = text.index("the best")
    snippet, at = cut_snippet(text, start, start + 17, 100)
    assert text.startswith(snippet.strip(ELLIPSIS), at)
    assert "the best passage" in snippet
    assert snippet.startswith(ELLIPSIS)
    assert snippet.endswith(ELLIPSIS)
    assert "before it" in snippet
    assert "after it" in snippet


def test_snippet_is_cut_between_lines() -> None:
    text = "".join(f"this is line number {number}\n" for number in range(60))
    start = text.index("this is line number 30")
    lines = cut_snippet(text, start, start + 24, 200)[0].strip(ELLIPSIS).split("\n")
    assert all(line in text.split("\n") for line in lines)


def test_without_lines_it_is_cut_between_words() -> None:
    text = " ".join(f"word{number}" for number in range(200))
    words = cut_snippet(text, 600, 610, 100)[0].strip(ELLIPSIS).split(" ")
    assert all(word in text.split(" ") for word in words[1:-1])
    assert words[-1] in text.split(" ")


def test_passage_longer_than_the_limit_is_cut_after_a_word() -> None:
    text = "introduction\n" + " ".join(f"word{number}" for number in range(200))
    snippet, _ = cut_snippet(text, 13, len(text), 100)
    assert snippet.startswith(f"{ELLIPSIS}word0 word1 ")
    assert snippet.rstrip(ELLIPSIS).split(" ")[-1] in text.split(" ")


def test_start_of_the_text_has_no_mark_before_it() -> None:
    text = "first words\n" + "more words\n" * 50
    snippet, _ = cut_snippet(text, 0, 0, 50)
    assert snippet.startswith("first words")
    assert snippet.endswith(ELLIPSIS)


def test_emoji_and_accents_are_not_torn_apart() -> None:
    family, letter = "👩‍👩‍👧‍👦", "e\u0301"
    text = (family + letter) * 60
    whole = set(regex.findall(r"\X", text))
    for limit in range(20, 60):
        for start in range(0, len(text), len(family + letter)):
            shown = cut_snippet(text, start, start, limit)[0].strip(ELLIPSIS)
            assert set(regex.findall(r"\X", shown)) <= whole


def test_a_hit_found_by_its_words_shows_the_passage_that_has_them() -> None:
    passages = ["# Tools\n", "Nothing to see.\n", "The goat ate the brake cable.\n"]
    legs = {"words": LegRank(1, 3.0), "vector": LegRank(4, 0.3, passage=10)}
    assert best_passage(passages, 10, legs, Marker("goat cable")) == 2


def test_a_hit_found_by_its_meaning_shows_the_nearest_passage() -> None:
    passages = ["The goat.\n", "Nothing to see.\n"]
    assert best_passage(passages, 5, {"vector": LegRank(1, 0.9, passage=6)}, Marker("goat")) == 1
    legs = {"words": LegRank(3, 3.0), "vector": LegRank(1, 0.9, passage=6)}
    assert best_passage(passages, 5, legs, Marker("goat")) == 1


def test_rare_word_shows_more_than_a_common_one() -> None:
    passages = ["The service is up.\n", "Its service record.\n", "The zeppelin landed.\n", "A service.\n"]
    assert best_passage(passages, 0, {"words": LegRank(1, 3.0)}, Marker("zeppelin service")) == 2


def test_function_words_do_not_make_a_passage_the_best() -> None:
    passages = ["What is it and why did they do it?\n", "The goat did.\n"]
    assert best_passage(passages, 0, {"words": LegRank(1, 3.0)}, Marker("why did they keep a goat")) == 1


def test_of_passages_with_the_same_words_a_leg_names_the_best() -> None:
    passages = ["A goat.\n", "Two goats, no, one goat.\n", "The goat.\n"]
    legs = {"words": LegRank(1, 3.0), "vector": LegRank(2, 0.3, passage=7)}
    assert best_passage(passages, 5, legs, Marker("goat")) == 2
    assert best_passage(passages, 5, {"words": LegRank(1, 3.0)}, Marker("goat")) == 1


def test_short_words_of_scripts_without_spaces_count() -> None:
    passages = ["今天没有事。\n", "家里有一只猫。\n", "会议在星期五。\n"]
    assert best_passage(passages, 0, {"trigram": LegRank(1, 1.0)}, Marker("猫")) == 1
    assert best_passage(passages, 0, {"trigram": LegRank(1, 1.0)}, Marker("会议")) == 2


def test_nothing_in_common_shows_the_passage_that_is_nearest_else_the_first() -> None:
    passages = ["One.\n", "Two.\n"]
    legs = {"words": LegRank(1, 1.0), "vector": LegRank(1, 0.3, passage=6)}
    assert best_passage(passages, 5, legs, Marker("goat")) == 1
    assert best_passage(passages, 5, {"words": LegRank(1, 1.0)}, Marker("goat")) == 0


def test_lines_of_a_passage_leave_out_the_blank_ones_around_it() -> None:
    assert lines_of("one\ntwo\n", 5) == Lines(5, 6)
    assert lines_of("\n \none\n\ntwo\n\n\n", 5) == Lines(7, 9)
    assert lines_of("end of a line\nnext", 5) == Lines(5, 6)
    assert lines_of("\n\n", 5) == Lines(5, 6)
    assert lines_of("", 5) == Lines(5, 5)


@given(
    st.text(alphabet="goat GOÄT山羊 …\n", max_size=60),
    st.sampled_from(["", ELLIPSIS, ELLIPSIS * 2]),
    st.sampled_from(["", ELLIPSIS, ELLIPSIS * 3]),
)
def test_marks_of_a_cut_change_no_highlight(text: str, before: str, after: str) -> None:
    marker, snippet = Marker("goat 山羊"), f"{before}{text}{after}"
    spans = mark_snippet(snippet, marker)
    assert spans == marker.mark(snippet)
    assert [snippet[start:end] for start, end in spans] == [text[s:e] for s, e in marker.mark(text)]
