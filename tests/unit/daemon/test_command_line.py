"""A search as it would be typed: what is proposed can be pasted into a shell."""

from __future__ import annotations

import shlex
from datetime import date
from pathlib import Path

import pytest

from memoryd.daemon import commands
from memoryd.daemon.cli import COMMANDS, build_parser
from memoryd.daemon.command_line import search_command
from memoryd.daemon.commands.outline import outline
from memoryd.daemon.commands.search import read_options
from memoryd.daemon.params import parse_params
from memoryd.daemon.requests import SearchRequest
from memoryd.store.search.why_not.changes import Change

FULL = SearchRequest(
    "who's on call? $(date)",
    limit=3,
    min_score=0.25,
    source=("memory", "skills"),
    path=("memory/2026-*",),
    workspace=("home",),
    scope="user:ana",
    exclude=("MEMORY.md", "0123456789abcdef"),
    after=date(2026, 10, 1),
    before=date(2026, 10, 31),
    as_of=date(2026, 11, 1),
    include_superseded=True,
    hyde=False,
    settings={"fusion": "rrf", "weights": {"vector": 0.5}, "mmr": {"enabled": True}},
)


@pytest.mark.parametrize("request_", [FULL, SearchRequest("boat"), SearchRequest("--help me")])
def test_command_asks_what_was_asked(request_: SearchRequest) -> None:
    program, *words = shlex.split(search_command(request_, ()))
    assert program == "memoryd"
    typed = read_options(build_parser().parse_args(words))
    assert parse_params(SearchRequest, typed) == request_


def test_changes_take_the_place_of_what_was_asked() -> None:
    changes = (
        Change("limit", 9),
        Change("after", None),
        Change("exclude", ()),
        Change("search.weights.vector", 0.8),
        Change("search.decay.strength", 0.0),
        Change("search.mmr.enabled", False),
    )
    _, *words = shlex.split(search_command(FULL, changes))
    typed = parse_params(SearchRequest, read_options(build_parser().parse_args(words)))
    assert (typed.limit, typed.after, typed.exclude, typed.scope) == (9, None, (), "user:ana")
    assert typed.settings == {
        "fusion": "rrf",
        "weights": {"vector": 0.8},
        "mmr": {"enabled": False},
        "decay": {"strength": 0},
    }


def test_query_can_change_too() -> None:
    assert (
        search_command(SearchRequest("boat"), (Change("query", "boat zeppelin"),)) == "memoryd search 'boat zeppelin'"
    )


def test_every_command_is_built_alone_as_it_is_among_all() -> None:
    """A command that is called imports itself alone."""
    modules = {path.stem for path in Path(commands.__path__[0]).glob("*.py") if "\ndef add_parser(" in path.read_text()}
    assert modules == set(COMMANDS.values())
    every = {command.words: command for command in outline(build_parser()).commands}
    assert list(every) == [(name,) for name in COMMANDS]
    for name in COMMANDS:
        assert outline(build_parser(name)).commands == (every[name,],)
