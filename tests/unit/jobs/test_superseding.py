"""What front matter says about notes that are out of date."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.markdown import read_front_matter
from memoryd.jobs.superseding import possible_places, read_superseding
from memoryd.store.model import Superseding


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("memory/old.md", ["memory/2026/memory/old.md", "memory/memory/old.md", "memory/old.md"]),
        ("old.md", ["memory/2026/old.md", "memory/old.md", "old.md"]),
        ("./old.md", ["memory/2026/old.md"]),
        ("../old.md", ["memory/old.md"]),
        ("../../old.md", ["old.md"]),
        ("/memory/old.md", ["memory/old.md"]),
        ("./old", ["memory/2026/old", "memory/2026/old.md"]),
        ("./v1.2", ["memory/2026/v1.2", "memory/2026/v1.2.md"]),
        ("[[/old]]", ["old", "old.md"]),
        ("[[./old|the old plan]]", ["memory/2026/old", "memory/2026/old.md"]),
        ("[[./old#Section]]", ["memory/2026/old", "memory/2026/old.md"]),
        ("./c#.md", ["memory/2026/c#.md"]),
        ("a/../b/./c.md", ["memory/2026/b/c.md", "memory/b/c.md", "b/c.md"]),
    ],
)
def test_name_is_looked_for_nearby_and_then_above(name: str, places: list[str]) -> None:
    assert possible_places("memory/2026/new.md", name) == tuple(places)


@pytest.mark.parametrize("name", ["../../../old.md", "..", "./", "memory/", "[[]]", "[[#x]]", "/..", "/../x.md"])
def test_name_that_leads_out_of_the_workspace_or_to_no_file_has_no_place(name: str) -> None:
    assert possible_places("memory/2026/new.md", name) == ()


@pytest.mark.parametrize(
    "lines",
    [
        "supersedes: /a.md",
        "supersedes: [/a.md]",
        "supersedes:\n  - /a.md",
        'supersedes: "[[/a.md]]"',
        "supersedes: [[/a.md]]",  # to YAML, a list in a list
        "supersedes:\n  - [[/a.md|that one]]",
    ],
)
def test_one_path_or_a_list_with_or_without_brackets(lines: str) -> None:
    front_matter = read_front_matter(f"---\n{lines}\n---\n")
    assert read_superseding("b.md", front_matter.values) == ((Superseding(True, ("a.md",)),), [])


def test_both_statements_are_read() -> None:
    statements, notices = read_superseding("b.md", {"superseded_by": "c.md", "supersedes": ["a.md", "/x.md"]})
    assert [(each.is_newer, each.places) for each in statements] == [
        (False, ("c.md",)),
        (True, ("a.md",)),
        (True, ("x.md",)),
    ]
    assert notices == []


@pytest.mark.parametrize("value", [None, "", [], False, [None, ""]])
def test_empty_property_says_nothing(value: object) -> None:
    assert read_superseding("b.md", {"superseded_by": value, "supersedes": value}) == ((), [])


def test_author_who_says_superseded_is_believed_whatever_by() -> None:
    outside, notices = read_superseding("b.md", {"superseded_by": "../elsewhere.md", "supersedes": "../elsewhere.md"})
    assert outside == (Superseding(False, ()),)
    assert notices == [
        "superseded_by: '../elsewhere.md' is not a path inside the workspace",
        "supersedes: '../elsewhere.md' is not a path inside the workspace",
    ]
    assert [each.is_newer for each in read_superseding("b.md", {"superseded_by": True})[0]] == [False]


def test_endless_list_is_cut_and_told() -> None:
    statements, notices = read_superseding("b.md", {"supersedes": [f"{number}.md" for number in range(5000)]})
    assert len(statements) == 1000
    assert notices == ["supersedes: only the first 1,000 names are read"]


@given(st.text(alphabet="ab/.[]#| "), st.sampled_from(["x.md", "a/x.md", "a/b/x.md"]))
def test_no_place_is_outside(name: str, path: str) -> None:
    for place in possible_places(path, name):
        assert not place.startswith("/")
        assert ".." not in place.split("/")
