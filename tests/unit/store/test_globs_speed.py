"""What a pattern means, by a matcher that is slow and plain; and that none takes long, whoever sends it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.store.globs import matches_any


def plainly(pattern: str, path: str) -> bool:
    """By every way there is, remembered: a star stays inside a folder, two cross folders."""
    if pattern.endswith("/"):
        pattern += "**"
    reached = {0}
    position = 0
    while position < len(pattern):
        starts = position == 0 or pattern[position - 1] == "/"
        if starts and pattern.startswith("**/", position):
            slashes = {at + 1 for at, char in enumerate(path) if char == "/"}
            reached |= {end for end in slashes if any(start < end for start in reached)}
            position += 3
        elif pattern.startswith("**", position):
            reached = {end for end in range(len(path) + 1) if any(start <= end for start in reached)}
            position += 2
        elif pattern[position] == "*":
            reached = {end for start in reached for end in range(start, len(path) + 1) if "/" not in path[start:end]}
            position += 1
        else:
            char = pattern[position]
            fitting = {at for at, found in enumerate(path) if (found != "/" if char == "?" else found == char)}
            reached = {at + 1 for at in reached & fitting}
            position += 1
    return len(path) in reached


@settings(max_examples=400)
@given(st.text("ab/*?", max_size=16), st.text("ab/", min_size=1, max_size=16))
def test_pattern_means_what_a_plain_matcher_says(pattern: str, path: str) -> None:
    if "***" not in pattern:  # which is none of ours
        assert matches_any(path, [pattern]) is plainly(pattern, path)


SLOW = [
    "a*" * 60 + "b",
    "**/" * 200 + "b",
    "*" * 100_000 + "b",
    "?*" * 60 + "b",
    "**/a*a*a*a*a*a*a*a*a*b",
    "**a" * 60 + "b",
    "**a*a" * 60 + "b",
    "**/a*/" * 60 + "b",
    "*/" * 50 + "b",
]


@pytest.mark.parametrize("pattern", SLOW)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Measured against as many characters read once."""
    path = "a" * 200 + "/" + "a" * 200
    assert not matches_any(path, [pattern])
    began = time.process_time()
    for _ in range(10):
        matches_any(path, [pattern])
    took = time.process_time() - began
    began = time.process_time()
    for _ in range(10):
        plainly("a" * 200, path)
    assert took < 1000 * max(time.process_time() - began, 0.0005)
