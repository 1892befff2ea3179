from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.globs import matches_any, static_prefix


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("MEMORY.md", "MEMORY.md"),
        ("memory/*.md", "memory/a.md"),
        ("memory/**/*.md", "memory/a.md"),
        ("memory/**/*.md", "memory/2026/11/15.md"),
        ("**/*.md", "a.md"),
        ("**/*.md", "x/y/a.md"),
        ("memory/", "memory/deep/down.txt"),
        ("memory/**", "memory/a/b"),
        ("**/drafts/**", "drafts/a.md"),
        ("**/drafts/**", "x/drafts/y/a.md"),
        ("note-?.md", "note-1.md"),
        ("notes**/a.md", "notes-old/x/a.md"),
        ("a[1].md", "a[1].md"),
        ("a+b(c).md", "a+b(c).md"),
        ("**/*.md", "日記/今日.md"),
        ("memory/*.md", "memory/line\nbreak.md"),
    ],
)
def test_path_matches(pattern: str, path: str) -> None:
    assert matches_any(path, [pattern])


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("MEMORY.md", "x/MEMORY.md"),
        ("MEMORY.md", "MEMORY.md.bak"),
        ("memory/*.md", "memory/x/a.md"),
        ("memory/*.md", "memory/amd"),
        ("memory/**/*.md", "memory.md"),
        ("memory/**/*.md", "other/memory/a.md"),
        ("memory/", "memory"),
        ("memory/", "memory2/a.md"),
        ("note-?.md", "note-/.md"),
        ("notes**/a.md", "notesa.md"),
        ("a[1].md", "a1.md"),
        ("*.md", "a.MD"),
    ],
)
def test_path_does_not_match(pattern: str, path: str) -> None:
    assert not matches_any(path, [pattern])


def test_no_pattern_matches_nothing() -> None:
    assert not matches_any("a.md", [])


def test_one_matching_pattern_is_enough() -> None:
    assert matches_any("b.md", ["a.md", "b.md"])


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [
        ("MEMORY.md", ""),
        ("memory/*.md", "memory"),
        ("memory/**/*.md", "memory"),
        ("a/b/c.md", "a/b"),
        ("a/*/c.md", "a"),
        ("a/b?/c.md", "a"),
        ("**/*.md", ""),
        ("memory/", "memory"),
    ],
)
def test_static_prefix_is_the_folder_that_all_matches_lie_in(pattern: str, folder: str) -> None:
    assert static_prefix(pattern) == folder


names = st.text(st.characters(codec="utf-8", exclude_characters="/*?"), min_size=1, max_size=5)
paths = st.lists(names, min_size=1, max_size=5).map("/".join)


@given(paths)
def test_path_without_marks_matches_itself_and_everything_matches_two_stars(path: str) -> None:
    assert matches_any(path, [path])
    assert matches_any(path, ["**"])
    assert matches_any(path, ["**/*"])
    assert matches_any(path, ["*"]) == ("/" not in path)


@given(paths, st.text("ab*?/[](.", max_size=8))
def test_match_lies_in_the_static_prefix(path: str, pattern: str) -> None:
    if matches_any(path, [pattern]) and static_prefix(pattern):
        assert path.startswith(f"{static_prefix(pattern)}/")
