"""Who a note is for, as words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.scope import GLOBAL, UNKNOWN, parse_scope, seen_from


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("global", "global"),
        (" Global ", "global"),
        ("user:ana", "user:ana"),
        ("User: Ana", "user:Ana"),
        ("agent:coder/v2", "agent:coder/v2"),
        ("session:telegram:42", "session:telegram:42"),
        ("user:José", "user:José"),
        ("user:Jose\u0301", "user:José"),
    ],
)
def test_scope_is_read_in_one_form(text: str, scope: str) -> None:
    assert parse_scope(text) == scope


@pytest.mark.parametrize(
    "text", ["", "ana", "user", "user:", "user: ", ":ana", "team:ana", "global:x", "user:a\nb", "user:*", "u" * 9]
)
def test_anything_else_is_no_scope(text: str) -> None:
    assert parse_scope(text) is None


@given(st.text())
def test_any_text_is_a_scope_or_not_and_reading_it_again_changes_nothing(text: str) -> None:
    scope = parse_scope(text)
    assert scope is None or (parse_scope(scope) == scope and scope != UNKNOWN)


def test_a_scope_sees_what_is_global_and_its_own() -> None:
    assert seen_from("user:ana") == (GLOBAL, "user:ana")
    assert seen_from(GLOBAL) == (GLOBAL,)
