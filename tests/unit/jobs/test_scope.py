"""Who a note is for, by its front matter and by its path."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.markdown import read_front_matter
from memoryd.jobs.scope import document_scope, parse_rule

RULES = tuple(
    map(
        parse_rule,
        ("agent:coder = memory/agents/coder/**", "user:*=memory/users/*/**", "global = memory/agents/**"),
    )
)


def scope_of(path: str, text: str = "words\n") -> tuple[str, bool]:
    """The scope, and whether a person is told of a problem."""
    scope, notice = document_scope(path, text, read_front_matter(text), RULES)
    assert notice is None or "only queries without a scope" in notice
    return scope, notice is not None


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("MEMORY.md", "global"),
        ("memory/agents/coder/a.md", "agent:coder"),
        ("memory/agents/writer/a.md", "global"),
        ("memory/users/ana/deep/er/a.md", "user:ana"),
        ("memory/users/a.md", "global"),
    ],
)
def test_path_decides_by_the_first_rule_that_knows_it(path: str, scope: str) -> None:
    assert scope_of(path) == (scope, False)


@pytest.mark.parametrize(
    ("line", "scope"),
    [("scope: user:bob", "user:bob"), ('scope: "session: 7"', "session:7"), ("Scope: GLOBAL", "global")],
)
def test_front_matter_goes_before_the_path(line: str, scope: str) -> None:
    assert scope_of("memory/users/ana/a.md", f"---\n{line}\n---\nwords\n") == (scope, False)


@pytest.mark.parametrize("line", ["title: x", "scope:", "scope: ~", "scope: ''"])
def test_front_matter_that_says_nothing_leaves_it_to_the_path(line: str) -> None:
    assert scope_of("memory/users/ana/a.md", f"---\n{line}\n---\nwords\n") == ("user:ana", False)


@pytest.mark.parametrize(
    "head",
    [
        "---\nscope: bob\n---\n",
        "---\nscope: team:x\n---\n",
        "---\nscope: [user:ana, user:bob]\n---\n",
        "---\nscope: true\n---\n",
        "---\nscope: 7\n---\n",
        "---\nscope: user:ana\nScope: user:bob\n---\n",
        "---\nscope: user: bob\n---\n",  # not YAML
        "---\n'scope' : *bob\n---\n",
        "---\ntitle: [x\nscope: user:bob\n---\n",
        "---\n{title: [x,\n scope: user:bob}\n---\n",
        "---\nscope: user:bob\n",  # never closed
        "\n---\nscope: user:bob\n---\n",  # not in the first line
    ],
)
def test_scope_that_cannot_be_understood_is_nobodys_and_told(head: str) -> None:
    """A note meant for somebody must not end up with everybody because of a mistake."""
    assert scope_of("memory/a.md", f"{head}words\n") == ("unknown", True)


@pytest.mark.parametrize("text", ["---\nrules\n---\nscope: of this paper\n", "a\n---\nscope: user:bob\n---\n", "---\n"])
def test_prose_is_no_front_matter(text: str) -> None:
    assert scope_of("memory/a.md", text) == ("global", False)


def test_folder_whose_name_cannot_be_a_scope_is_nobodys() -> None:
    assert parse_rule("user:* = u/*/**").scope_of("u/*/a.md") == "unknown"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("memory/**", "scope = glob"),
        ("user:ana", "scope = glob"),
        ("user:ana =", "scope = glob"),
        ("ana = memory/**", "user:<id>"),
        ("team:* = memory/*/**", "user:<id>"),
        ("user:ana = /etc/**", "out of the folder"),
        ("user:ana = memory/../../x", "out of the folder"),
        ("user:* = memory/ana/**", "*"),
        ("user:* = memory/*.md", "*"),
        ("user:* = memory/x*/*/**", "*"),
        ("user:* = **/*/a.md", "*"),
    ],
)
def test_rule_that_makes_no_sense_is_refused_with_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_rule(text)


@given(st.text(), st.text(alphabet="-\n:{}[]'\" scopeuser*ab"))
def test_any_text_has_a_scope(path: str, text: str) -> None:
    scope, notice = document_scope(path, text, read_front_matter(text), RULES)
    assert (scope == "unknown") == (notice is not None) or "users/" in path
