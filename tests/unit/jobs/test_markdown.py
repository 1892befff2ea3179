"""Front matter and the kinds of lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.markdown import Kind, document_title, read_front_matter, read_spans


def kinds(text: str) -> list[str]:
    return [span.kind.name for span in read_spans(text)]


def headings(text: str) -> list[tuple[int, str]]:
    return [(span.level, span.title) for span in read_spans(text) if span.kind is Kind.HEADING]


def test_front_matter_becomes_plain_values() -> None:
    front = read_front_matter(
        "---\n"
        "title: Ride\n"
        "date: 2026-11-5\n"
        "at: 2026-11-15 10:30:00\n"
        "nested: {1: no, true: 10:30}\n"
        "code: 007\n"
        "quoted: '7'\n"
        "tags: [a, 7, 1.5, ~, true]\n"
        "---\n"
        "Text.\n"
    )
    assert front.values == {
        "date": "2026-11-05",
        "at": "2026-11-15T10:30:00",
        "nested": {"1": "no", "true": "10:30"},
        "code": "007",
        "quoted": "7",
        "tags": ["a", 7, 1.5, None, True],
        "title": "Ride",
    }
    assert (front.lines, front.problem) == (9, None)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", 0),
        ("---", 0),
        ("---\ntitle: never closed\n", 0),
        (" ---\ntitle: indented\n---\n", 0),
        ("---\nProse between two rules\n---\n", 0),
        ("---\n---\n", 2),
        ("---\ntitle: x\n---", 3),
        ("---\ntitle: x\n...\n", 3),
        ("---  \n# comment\n---  \ntext\n", 3),
    ],
)
def test_front_matter_stands_between_fences_at_the_top(text: str, lines: int) -> None:
    front = read_front_matter(text)
    assert (front.lines, front.problem) == (lines, None)


@pytest.mark.parametrize(
    ("yaml", "problem"),
    [
        ("title: a: b", "not valid YAML in line 2"),
        ("a: b\n\tc: d", "not valid YAML in line 3"),
        ("a: \x00", "characters"),
        ("a: &x [1]\nb: *x", "aliases"),
        (
            "\n".join(f"k{i}: &k{i} [*k{i - 1}, *k{i - 1}]" if i else "k0: &k0 [x]" for i in range(40)),
            "aliases",
        ),
        ("a: &a [*a]", "aliases"),
        ("a: " + "[" * 5000, "nested"),
        ("a: " + "{b: " * 5000, "nested"),
        ("- " * 5000 + "x", "nested"),
        ("? [a]\n: b", "as a key"),
        ("a: '" + "x" * 70_000 + "'", "64 KiB"),
    ],
)
def test_broken_or_hostile_front_matter_is_named_and_is_text(yaml: str, problem: str) -> None:
    front = read_front_matter(f"---\n{yaml}\n---\n")
    assert front.problem is not None
    assert problem in front.problem
    assert (front.values, front.lines) == ({}, 0)


@pytest.mark.parametrize("value", [".nan", "-.inf", "1e999", "9" * 5000, "!!python/object:os.system x", "!!binary zz"])
def test_odd_values_are_text(value: str) -> None:
    front = read_front_matter(f"---\na: {value}\n---\n")
    assert front.problem is None
    assert isinstance(front.values["a"], str)


@given(st.text(max_size=200))
def test_any_front_matter_gives_json(yaml: str) -> None:
    front = read_front_matter(f"---\n{yaml}\n---\n")
    json.dumps(front.values, allow_nan=False)
    assert front.problem is None or not front.values


def test_title_is_that_of_the_front_matter_else_the_first_top_heading() -> None:
    text = "---\ntitle: From above\n---\n## Not this\n# This\n# Nor this\n"
    assert document_title(text, read_front_matter(text)) == "From above"
    text = "```\n# code\n```\n## Not this\n# This\n# Nor this\n"
    assert document_title(text, read_front_matter(text)) == "This"
    assert document_title("text\n", read_front_matter("text\n")) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# One\n###### Six ##\n", [(1, "One"), (6, "Six")]),
        ("#\n## ##\n", [(1, ""), (2, "")]),
        ("   # Three spaces\n", [(1, "Three spaces")]),
        ("    # Four spaces\n####### Seven\n#tag\n\\# escaped\n", []),
        ("# C#\n", [(1, "C#")]),
        ("Above\n=====\n\nBelow\n---\n", [(1, "Above"), (2, "Below")]),
        ("two lines\nof text\n---\n- item\n---\n> quote\n---\n", []),
        ("---\n\n---\n\n***\n", []),
        ("---\n# comment: in YAML\ntitle: x\n---\n# Real\n", [(1, "Real")]),
        ("# " + "x" * 1000, [(1, "x" * 120)]),
    ],
)
def test_headings_are_those_of_commonmark(text: str, found: list[tuple[int, str]]) -> None:
    assert headings(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```py\n# a\n```\ntext\n", ["CODE", "TEXT"]),
        ("~~~\n```\n~~~~\ntext", ["CODE", "TEXT"]),
        ("````\n```\n# a\n````\n", ["CODE"]),
        ("```\n# never closed\n", ["CODE"]),
        ("``` not `code`\n", ["TEXT"]),
        ("- item\n  ```\n  # a\n  ```\n- next\n", ["ITEM", "CODE", "ITEM"]),
        ("- item\n    ```\n    # a\n    ```\n", ["ITEM", "CODE"]),
        ("text\n\n    ```\n", ["TEXT", "BLANK", "TEXT"]),
        ("\n \n\t\nx\n\n", ["BLANK", "TEXT", "BLANK"]),
        ("* a\n1. b\n2) c\n-d\n1.e\n", ["ITEM", "ITEM", "ITEM", "TEXT", "TEXT"]),
        ("| a |\n|---|\n| 1 |\n", ["TABLE", "TABLE", "TABLE"]),
        ("a\x0bb\x0cc\rd\x85e\u2028f\n", ["TEXT"]),
    ],
)
def test_lines_have_kinds(text: str, found: list[str]) -> None:
    assert kinds(text) == found


@given(st.text(alphabet=st.sampled_from("#`~-=|*>1. \tab\n\u2028\r"), max_size=120))
def test_spans_are_the_whole_text_in_whole_lines(text: str) -> None:
    spans = list(read_spans(text))
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert all(text[span.end - 1] == "\n" for span in spans[:-1])
