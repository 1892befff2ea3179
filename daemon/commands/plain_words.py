"""A command line that is plainly written, read without argparse, which takes as long as the search that is asked for.

A command declares its options once, by calls of ``add_argument``. ``PlainParser`` takes the same calls as argparse's
parser does, and reads what can have one meaning alone. Everything else is argparse's to read: abbreviations, mistakes,
words that begin with a dash, ``--help``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace

TYPE_CHECKING = False  # importing typing would take as long as argparse
if TYPE_CHECKING:
    from typing import Any

_FIXED: dict[str, dict[str, object]] = {  # what the flags of an action say by themselves, by the flag's beginning
    "store_true": {"--": True},
    "switch": {"--": True, "--no-": False},
}


class NotPlain(Exception):
    """For argparse to read."""


class PlainParser:
    """Of one command; stands in for argparse's list of commands too."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._options: dict[str, _Option] = {}
        self._positional: tuple[str, bool] | None = None  # its name, and whether it takes several words

    def add_parser(self, _name: str, **_described: str) -> PlainParser:
        return self

    def set_defaults(self, **values: object) -> None:
        self._values |= values

    def add_argument(
        self,
        *flags: str,
        action: str = "store",
        nargs: str | None = None,
        type: Callable[[str], object] = str,
        default: object = None,
        metavar: str = "",  # noqa: ARG002  for the help, which argparse prints
        help: str = "",  # noqa: ARG002
    ) -> None:
        name = flags[0].lstrip("-").replace("-", "_")
        if not flags[0].startswith("-"):
            self._positional = name, nargs == "+"
            return
        self._values[name] = False if action == "store_true" else default
        for beginning, value in _FIXED.get(action, {}).items():
            self._options[flags[0].replace("--", beginning, 1)] = _Option(name, value=value)
        if action not in _FIXED:
            self._options |= dict.fromkeys(flags, _Option(name, read=type, repeated=action == "append"))

    def parse(self, words: Iterable[str]) -> SimpleNamespace:
        """What argparse would make of the words. Raises ``NotPlain``."""
        values = dict(self._values)
        said: list[str] = []
        ended = False
        rest = iter(words)
        for word in rest:
            if word.startswith("-"):
                self._take_option(word, rest, values)
                ended = bool(said)
            elif ended:
                raise NotPlain  # the words of one argument stand together
            else:
                said.append(word)
        if self._positional is None or not said:
            raise NotPlain
        name, several = self._positional
        if len(said) > 1 and not several:
            raise NotPlain
        return SimpleNamespace(**values, **{name: said if several else said[0]})

    def _take_option(self, word: str, rest: Iterator[str], values: dict[str, Any]) -> None:
        flag, equals, text = word.partition("=")
        option = self._options.get(flag)
        if option is None or (equals and (option.read is None or not flag.startswith("--"))):
            raise NotPlain
        if option.read is None:
            values[option.name] = option.value
            return
        if not equals and (text := next(rest, "-")).startswith("-"):
            raise NotPlain
        if text == "--":  # which argparse takes out of what is said, before Python 3.13
            raise NotPlain
        try:
            value = option.read(text)
        except (TypeError, ValueError):
            raise NotPlain from None
        values[option.name] = [*values[option.name], value] if option.repeated else value


class _Option:
    """What a flag says: a value of its own, or the word that follows."""

    def __init__(
        self,
        name: str,
        *,
        value: object = None,
        read: Callable[[str], object] | None = None,
        repeated: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read = read
        self.repeated = repeated
