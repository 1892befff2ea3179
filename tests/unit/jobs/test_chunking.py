"""Passages and chunks: what they contain, where they are cut, and what an edit changes."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.chunking import group_chunks, split_passages
from memoryd.jobs.markdown import Kind, read_spans
from memoryd.jobs.tokens import estimate_tokens
from memoryd.store.model import Chunk, Passage

WORDS = re.findall(r"\w+", "the bike dock sensor sent a late reading because rain drowned its battery again")
HAN = "车站传感器因为下雨没电所以数据迟到我们决定改用定时任务并在周一更换所有旧型号的设备"

CHARACTERS = ("👩‍👩‍👧‍👦", "e\u0301\u0323", "🇩🇪", "नि", "각", "x", "漢", "。\ufe00", " \u0301", "\r\n", "! ")

markdown = st.lists(
    st.one_of(
        st.sampled_from(["# One", "## Two", "#### Four", "", "", "```", "~~~", "| a | b |", "|---|---|", "---"]),
        st.integers(1, 60).map(lambda n: " ".join(WORDS * 4)[: n * 8]),
        st.integers(1, 60).map(lambda n: "- " + " ".join(WORDS * 4)[: n * 8]),
        st.integers(1, 200).map(lambda n: (HAN * 6)[:n] + "。"),
        st.text(max_size=80),
    ),
    max_size=60,
).map("\n".join)


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) + rng.choice(["", "s", "ed"]) for _ in range(words))


def cut(text: str) -> list[str]:
    return [passage.text for passage in split_passages(text)]


def offsets(passages: tuple[Passage, ...]) -> list[int]:
    ends = [0]
    for passage in passages:
        ends.append(ends[-1] + len(passage.text))
    return ends


# What is always true


@given(st.one_of(st.text(), markdown))
def test_passages_joined_are_the_text(text: str) -> None:
    assert "".join(cut(text)) == text


@given(markdown)
def test_passages_stay_within_their_size(text: str) -> None:
    for passage in split_passages(text):
        assert passage.text
        assert estimate_tokens(passage.text) <= passage.tokens <= 128


@given(markdown)
def test_passages_know_their_lines(text: str) -> None:
    at = 0
    for passage in split_passages(text):
        last = at + len(passage.text) - 1
        assert passage.start_line == text.count("\n", 0, at) + 1
        assert passage.end_line == text.count("\n", 0, last) + 1
        at = last + 1


@given(markdown, st.integers(128, 500), st.integers(0, 150))
def test_chunks_cover_the_text_within_their_budget(text: str, budget: int, overlap: int) -> None:
    passages = split_passages(text)
    chunks = group_chunks(passages, budget=budget, overlap=overlap)
    covered = -1
    own: list[str] = []
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        run = passages[chunk.first_passage : chunk.last_passage + 1]
        repeated = passages[chunk.first_passage : covered + 1]
        fresh = passages[covered + 1 : chunk.last_passage + 1]
        assert fresh, "a chunk always advances"
        assert chunk.first_passage <= covered + 1
        assert chunk.tokens == sum(passage.tokens for passage in run) <= budget
        assert sum(passage.tokens for passage in repeated) <= 2 * overlap
        assert (chunk.start_line, chunk.end_line) == (run[0].start_line, run[-1].end_line)
        assert chunk.heading == fresh[0].heading
        own += [passage.text for passage in fresh]
        covered = chunk.last_passage
    assert "".join(own) == text


@given(markdown, st.integers(128, 500), st.integers(0, 150))
def test_code_that_fits_is_never_cut(text: str, budget: int, overlap: int) -> None:
    passages = split_passages(text)
    ends = offsets(passages)
    chunks = group_chunks(passages, budget=budget, overlap=overlap)
    for span in read_spans(text):
        tokens = estimate_tokens(text[span.start : span.end])
        if span.kind is not Kind.CODE or tokens > budget:
            continue
        if tokens <= 128:
            assert not any(span.start < end < span.end for end in ends)
        for chunk in chunks:
            edges = (ends[chunk.first_passage], ends[chunk.last_passage + 1])
            assert not any(span.start < edge < span.end for edge in edges)


@given(
    st.lists(
        st.sampled_from(
            ["👩‍👩‍👧‍👦", "e\u0301\u0323", "🇩🇪", "नि", "각", "x", "漢", "。\ufe00", " \u0301", "\r\n", "! "]
        ),
        min_size=100,
        max_size=250,
    ).map("".join)
)
def test_no_cut_falls_inside_a_character(text: str) -> None:
    boundaries = {match.end() for match in regex.finditer(r"\X", text)}
    assert set(offsets(split_passages(text))[1:]) <= boundaries


def test_a_character_without_end_is_cut_all_the_same() -> None:
    for mark in ("\u0301", "\ufe0f", "\u200d", "\u0600"):
        passages = split_passages("e" + mark * 5000)
        assert len(passages) > 10
        assert max(passage.tokens for passage in passages) <= 128


@given(markdown)
def test_splitting_is_deterministic(text: str) -> None:
    assert split_passages(text) == split_passages(text)


# Where cuts fall


def test_nothing_comes_of_nothing() -> None:
    assert split_passages("") == ()
    assert group_chunks(()) == ()


def test_white_space_alone_is_one_chunk() -> None:
    (passage,) = split_passages(" \n\n\t\n")
    assert (passage.start_line, passage.end_line, passage.tokens) == (1, 3, 0)
    assert len(group_chunks((passage,))) == 1


def test_a_trailing_line_end_opens_no_line() -> None:
    (passage,) = split_passages("one\ntwo\n")
    assert (passage.start_line, passage.end_line) == (1, 2)


def test_only_line_feeds_end_lines() -> None:
    (passage,) = split_passages("one\x0btwo\x0cthree\rfour\x85five\u2028six\u2029seven\n")
    assert (passage.start_line, passage.end_line) == (1, 1)


def test_passages_begin_at_headings_which_stay_with_their_text() -> None:
    text = "\n# Title\n\n## First\ntext\n\n## Second\n\ntext\n"
    assert cut(text) == ["\n# Title\n\n## First\ntext\n\n", "## Second\n\ntext\n"]
    assert [passage.heading for passage in split_passages(text)] == ["Title > First", "Title > Second"]


def test_breadcrumb_is_the_path_of_headings_in_force() -> None:
    text = "lead\n# A\na\n### C\nc\n## B\nb\n```\n# code\n```\n# D\nd\n"
    assert [passage.heading for passage in split_passages(text)] == ["", "A", "A > C", "A > B", "D"]


def test_paragraphs_are_better_than_lines_and_lines_better_than_sentences() -> None:
    rng = random.Random(1)
    paragraph = "".join(f"{sentence(rng, 9)}.\n" for _ in range(8)) + "\n"
    assert cut(paragraph * 6) == [paragraph] * 6
    line = ". ".join(sentence(rng, 12).capitalize() for _ in range(6)) + ".\n"
    assert cut(line * 6) == [line] * 6


@pytest.mark.parametrize("end", [". ", "! ", "。", "？", "؟ ", "। ", ".” ", "！」"])
def test_a_long_line_is_cut_at_sentences_of_every_script(end: str) -> None:
    rng = random.Random(2)
    text = "".join(sentence(rng, 14) + end for _ in range(40)).strip()
    pieces = cut(text)
    assert len(pieces) > 3
    assert all(piece.endswith(end) for piece in pieces[:-1])


def test_a_small_code_block_is_one_passage() -> None:
    rng = random.Random(3)
    code = "```\n" + "".join(f"{sentence(rng, 4)}\n\n" for _ in range(20)) + "```\n"
    prose = f"{sentence(rng, 35)}\n"
    assert 70 < estimate_tokens(code) <= 128
    assert code in "".join(cut(prose + code + prose))
    assert any(code in passage for passage in cut(prose + code + prose))


def test_a_large_code_block_is_cut_at_its_lines_and_kept_in_one_chunk() -> None:
    rng = random.Random(4)
    code = "```\n" + "".join(f"{sentence(rng, 8)}\n" for _ in range(44)) + "```\n"
    assert 380 < estimate_tokens(code) <= 400, "there is no room for anything else"
    text = f"{sentence(rng, 15)}\n{code}{sentence(rng, 15)}\n"
    passages = split_passages(text)
    inside = [passage.text for passage in passages if passage.text in code]
    assert len(inside) >= 3
    assert all(passage.endswith("\n") for passage in inside)
    whole = [
        chunk
        for chunk in group_chunks(passages)
        if code in "".join(p.text for p in passages[chunk.first_passage : chunk.last_passage + 1])
    ]
    assert len(whole) == 1


def passage(ordinal: int, text: str, tokens: int) -> Passage:
    return Passage(ordinal, text, "", ordinal + 1, ordinal + 1, tokens)


def runs(chunks: tuple[Chunk, ...]) -> list[tuple[int, int]]:
    return [(chunk.first_passage, chunk.last_passage) for chunk in chunks]


def test_chunks_end_before_the_highest_heading_of_their_last_third() -> None:
    texts = ["a\n", "# b\nb\n", "c\n", "d\n", "## e\ne\n", "### f\nf\n", "g\n"]
    passages = [passage(i, text, 80) for i, text in enumerate(texts)]
    assert runs(group_chunks(passages)) == [(0, 3), (4, 6)]


def test_overlap_repeats_whole_passages_where_a_section_is_cut_and_none_at_a_heading() -> None:
    texts = [f"{name}\n\n" for name in "abcdefgh"]
    sizes = [100, 100, 100, 40, 40, 100, 100, 100]
    passages = [passage(i, text, size) for i, (text, size) in enumerate(zip(texts, sizes, strict=True))]
    assert runs(group_chunks(passages)) == [(0, 4), (3, 7)]
    passages[5] = passage(5, "# f\n\n", 100)
    assert runs(group_chunks(passages)) == [(0, 4), (5, 7)]
    assert runs(group_chunks([*passages[:5], passage(5, "f\n\n", 100)], overlap=0)) == [(0, 4), (5, 5)]


def test_small_sections_share_a_chunk() -> None:
    text = "".join(f"## Section {i}\nA line.\n" for i in range(10))
    assert len(split_passages(text)) == 10
    assert runs(group_chunks(split_passages(text))) == [(0, 9)]


def test_a_budget_below_a_passage_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        group_chunks((), budget=100)


# What an edit changes


def chat(rng: random.Random) -> str:
    return "".join(f"{rng.choice(['ana', 'bo'])}: {sentence(rng, rng.randint(2, 30))}\n" for _ in range(900))


def equal_turns(rng: random.Random) -> str:
    return "".join(f"turn {i:04}: {sentence(rng, 40)}\n" for i in range(350))


def wall_of_han(rng: random.Random) -> str:
    return "".join(rng.choice(HAN) for _ in range(15_000))


def wall_of_words(rng: random.Random) -> str:
    return sentence(rng, 15_000)


def list_items(rng: random.Random) -> str:
    return "".join(f"- {sentence(rng, rng.randint(3, 25))}\n" for _ in range(1000))


def sections(rng: random.Random) -> str:
    return "".join(f"## Part {i}\n\n{sentence(rng, rng.randint(9, 300))}\n\n" for i in range(120))


@pytest.mark.parametrize("kind", [chat, equal_turns, wall_of_han, wall_of_words, list_items, sections])
@pytest.mark.parametrize("where", [0.0, 0.5, 0.9])
def test_an_inserted_or_deleted_line_changes_few_passages(kind: Callable[[random.Random], str], where: float) -> None:
    rng = random.Random(6)
    text = kind(rng)
    at = text.find("\n", int(len(text) * where)) + 1 if where else 0
    inserted = f"{text[:at]}turn 9999: {sentence(rng, 40)}\n{text[at:]}"  # as long as the equal turns
    before, after = cut(text), cut(inserted)
    assert len(before) > 150
    assert len(set(after) - set(before)) <= 6
    assert len(set(before) - set(after)) <= 6


# What it costs


@pytest.mark.parametrize(
    "grow",
    [
        lambda n: "x" * n,
        lambda n: "漢" * n,
        lambda n: "\n" * n,
        lambda n: " " * n,
        lambda n: "# h\n" * (n // 4),
        lambda n: "## a\n\nb\n" * (n // 8),
        lambda n: "```\n" * (n // 4),
        lambda n: "- \n  ```\n" * (n // 8),
        lambda n: "\U0001f1e9" * n,
        lambda n: "e" + "\u0301" * n,
        lambda n: ". " * (n // 2),
        lambda n: "| a " * (n // 4),
        lambda n: "---\n" * (n // 4),
        lambda n: "a b, c. d\n" * (n // 10),
    ],
)
def test_time_grows_with_the_size_and_not_with_its_square(grow: Callable[[int], str]) -> None:
    def seconds(text: str) -> float:
        best = float("inf")
        for _ in range(2):
            began = time.process_time()
            group_chunks(split_passages(text))
            best = min(best, time.process_time() - began)
        return best

    small, large = grow(5_000), grow(20_000)
    split_passages(small)
    assert seconds(large) < 9 * seconds(small) + 0.02
