"""When a note was written, and whether that matters."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.dates import document_date, is_evergreen
from memoryd.jobs.markdown import read_front_matter

DAY = date(2026, 11, 15)


@pytest.mark.parametrize(
    "path",
    [
        "memory/2026-11-15.md",
        "memory/2026-11-15-slug.md",
        "memory/slug-2026-11-15.md",
        "memory/2026/11/15.md",
        "memory/2026/11/2026-11-15.md",
        "memory/2026-10-01/2026-11-15.md",
        "memory/2026/2026-11-15-standup.md",
        "memory/journal/2026_11_15.md",
        "memory/2026.11.15.md",
        "memory/20261115.md",
        "memory/2026/11/15/standup.md",
    ],
)
def test_date_in_the_path(path: str) -> None:
    assert document_date(path, {}) == DAY


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "memory/projects.md",
        "memory/2026-13-45.md",
        "memory/2026-02-30.md",
        "memory/12026-11-15.md",
        "memory/2026-11-155.md",
        "memory/ticket-12345678.md",
        "memory/10230415.md",
        "memory/2026.md",
        "memory/2026-11.md",
        "",
    ],
)
def test_no_date_in_the_path(path: str) -> None:
    assert document_date(path, {}) is None


@pytest.mark.parametrize(
    "line",
    [
        "date: 2026-11-15",
        "date: '2026-11-15'",
        "date: 2026-11-15T10:30:00Z",
        "date: 2026-11-15 10:30",
        "date: 2026/11/15",
        "date: 20261115",
    ],
)
def test_front_matter_goes_before_the_path(line: str) -> None:
    front_matter = read_front_matter(f"---\n{line}\n---\ntext\n")
    assert front_matter.problem is None
    assert document_date("memory/2020-01-01.md", front_matter.values) == DAY


@pytest.mark.parametrize("stated", ["soon", "", None, [], {}, 7, 1.5, True, "2026-99-99"])
def test_front_matter_without_a_date_leaves_it_to_the_path(stated: Any) -> None:
    assert document_date("memory/2026-11-15.md", {"date": stated}) == DAY


@pytest.mark.parametrize(
    ("path", "written", "expected"),
    [
        ("memory/projects.md", None, True),
        ("memory/2026-11-15.md", DAY, False),
        ("MEMORY.md", DAY, True),
        ("skills/deploy/SKILL.md", DAY, True),
        ("memory/handbook/2026-11-15.md", DAY, True),
        ("memory/MEMORY.md", DAY, False),
    ],
)
def test_evergreen_is_what_has_no_date_or_is_declared_so(path: str, written: date | None, expected: bool) -> None:
    assert is_evergreen(path, written, ("memory/handbook/**",)) is expected


@given(st.text(), st.dictionaries(st.text(max_size=5) | st.just("date"), st.text() | st.integers() | st.none()))
def test_no_path_and_no_front_matter_raises(path: str, front_matter: dict[str, Any]) -> None:
    written = document_date(path, front_matter)
    assert isinstance(is_evergreen(path, written, ()), bool)


@given(
    st.dates(min_value=date(1900, 1, 1), max_value=date(2099, 12, 31)),
    st.sampled_from(["%Y-%m-%d", "%Y%m%d", "%Y/%m/%d"]),
)
def test_every_date_is_found_in_a_path(day: date, form: str) -> None:
    assert document_date(f"memory/{day.strftime(form)}.md", {}) == day
