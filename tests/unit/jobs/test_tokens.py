"""Estimated token counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.tokens import estimate_tokens, token_ends


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("the quick brown fox", 4),
        ("don't stop.", 5),
        ("internationalization", 5),
        ("camelCaseName", 3),
        ("2026-11-15", 6),
        ("naïve café", 2),
        ("e\u0301te\u0301", 1),
        ("我们决定改用定时器。", 10),
        ("サーバーを再起動した", 10),
        ("정류소 센서", 10),
        ("Привет", 3),
        ("🚲❤️👩‍💻", 4),
        ("\n" * 64, 2),
    ],
)
def test_estimate_follows_the_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_estimate_is_additive_between_words(left: str, right: str) -> None:
    assert estimate_tokens(f"{left}a b{right}") == estimate_tokens(f"{left}a ") + estimate_tokens(f"b{right}")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_everything_but_white_space_costs_something(text: str) -> None:
    assert (estimate_tokens(text) > 0) >= bool(text.strip())


@given(st.text())
def test_token_ends_are_as_many_as_the_tokens(text: str) -> None:
    tokens = list(token_ends(text, 0, len(text)))
    assert sum(count for _, count in tokens) == estimate_tokens(text)
    ends = [end for end, _ in tokens]
    assert ends == sorted(set(ends))


def test_noise_is_not_cheap() -> None:
    assert estimate_tokens("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08") > 32
    assert estimate_tokens("x" * 3000) > 900
