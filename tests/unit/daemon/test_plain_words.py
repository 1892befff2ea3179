"""A plain command line is read as argparse would read it, or left to argparse."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoryd.daemon.cli import COMMANDS, PLAIN, build_parser, read_words
from memoryd.daemon.commands.options import add_common
from memoryd.daemon.commands.outline import outline
from memoryd.daemon.commands.plain_words import NotPlain, PlainParser

OUTLINES = {command.words[0]: command for command in outline(build_parser()).commands}
PARSERS = {name: build_parser(name) for name in PLAIN}
FLAGS = {name: [flag for option in OUTLINES[name].options for flag in option.flags] for name in PLAIN}
WORDS = ["boat", "", "two words", "3", "0.5", "x=y", "-", "--", "-1", "-n3", "- dash", "é", "\udcff"]


def read_plainly(words: list[str]) -> dict[str, object] | None:
    parser = PlainParser()
    import_module(f"memoryd.daemon.commands.{COMMANDS[words[0]]}").add_parser(parser, add_common)
    try:
        return vars(parser.parse(words[1:]))
    except NotPlain:
        return None


def read_by_argparse(words: list[str]) -> dict[str, object] | None:
    with redirect_stderr(StringIO()), redirect_stdout(StringIO()), suppress(SystemExit):
        return vars(PARSERS[words[0]].parse_args(words))
    return None


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    name = draw(st.sampled_from(PLAIN))
    flag = st.sampled_from(FLAGS[name])
    word = st.sampled_from(WORDS) | st.text(max_size=4)
    written = flag | word | st.tuples(flag, word).map("=".join) | flag.map(lambda flag: flag[:-1])
    return [name, *draw(st.lists(written, max_size=6))]


@given(command_lines())
@example(["search", "boat", "--json", "zeppelin"])  # the words of one argument stand together
@example(["search", "--limit=3", "boat"])
@example(["search", "--limit=", "boat"])
@example(["search", "-n=3", "boat"])
@example(["search", "--hyde", "--no-hyde", "boat"])
@example(["search", "--hyde=1", "boat"])
@example(["search", "--source", "memory", "--source=skills", "boat"])
@example(["search", "--lim", "3", "boat"])
@example(["get", "MEMORY.md", "other.md"])
def test_what_is_read_plainly_argparse_reads_alike(words: list[str]) -> None:
    plainly = read_plainly(words)
    assert plainly is None or plainly == read_by_argparse(words)


@pytest.mark.parametrize("name", PLAIN)
def test_every_option_can_be_read_plainly(name: str) -> None:
    for option in OUTLINES[name].options:
        for flag in option.flags:
            if flag in ("-h", "--help"):
                continue
            words = [name, "boat", flag, *(["3"] if option.value else [])]
            assert read_plainly(words) is not None, words


@pytest.mark.parametrize(
    "words",
    [["search"], ["search", "--help"], ["search", "boat", "--limit", "many"], ["search", "boat", "--limit"], ["get"]],
)
def test_mistakes_and_help_are_left_to_argparse(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert read_plainly(words) is None
    with pytest.raises(SystemExit):
        read_words(words)
    assert "usage: memoryd" in "".join(capsys.readouterr())


def test_what_is_not_plain_is_read_all_the_same() -> None:
    assert read_plainly(["search", "--", "-boat"]) is None
    assert read_words(["search", "--", "-boat"]).query == ["-boat"]
    assert read_words(["search", "--lim", "3", "boat"]).limit == 3
