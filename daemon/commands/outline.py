"""The command line as data, read off its parser: what the completions and the manual page are written from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    flags: tuple[str, ...]  # "-w", "--watch"
    help: str
    value: str = ""  # what its value is called; empty: it takes none
    value_is_optional: bool = False
    choices: tuple[str, ...] = ()
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Argument:
    value: str
    help: str
    required: bool
    repeated: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]  # after the program's name: ("config", "set"); none: the program itself
    help: str
    description: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    commands: tuple[Command, ...]

    def walk(self) -> Iterator[Command]:
        """This command, and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def outline(parser: argparse.ArgumentParser, words: tuple[str, ...] = (), summary: str = "") -> Command:
    """What a parser takes. argparse has no public way to ask; these attributes have been there since its start."""
    options: list[Option] = []
    arguments: list[Argument] = []
    commands: list[Command] = []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            commands += [outline(sub, (*words, name), told.get(name, "")) for name, sub in action.choices.items()]
        elif action.option_strings:
            options.append(_option(parser, action))
        else:
            arguments.append(
                Argument(
                    value=_value(action),
                    help=_help(parser, action),
                    required=action.nargs not in ("?", "*"),
                    repeated=action.nargs in ("*", "+"),
                    choices=tuple(map(str, action.choices or ())),
                )
            )
    return Command(words, summary, parser.description or summary, tuple(options), tuple(arguments), tuple(commands))


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> Option:
    takes_value = action.nargs != 0
    return Option(
        flags=tuple(sorted(action.option_strings, key=lambda flag: flag.startswith("--"))),
        help=_help(parser, action),
        value=_value(action) if takes_value else "",
        value_is_optional=action.nargs == "?",
        choices=tuple(map(str, action.choices or ())) if takes_value else (),
        repeated=isinstance(action, argparse._AppendAction),
    )


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar:
        return action.metavar
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""
