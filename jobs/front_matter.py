"""Front matter: the YAML between two `---` lines at the top of a markdown file.

The YAML is read event by event, not with a loader that builds objects: whatever a file says, reading it takes
bounded time and memory and gives plain JSON values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import yaml

_MAX_CHARACTERS = 64 * 1024
_MAX_DEPTH = 16

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")  # 007 is a name, not a number
_FLOAT = re.compile(r"[-+]?[0-9]{1,300}(?:\.[0-9]{0,300})?(?:[eE][-+]?[0-9]{1,3})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_CONSTANTS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}

# The parser in C is fifty times faster; PyYAML is sometimes built without it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands in front of the text of a document."""

    values: dict[str, Any]  # plain JSON values; dates are ISO strings
    lines: int  # how many lines it occupies, fences included; 0 = the text begins at the first line
    problem: str | None  # what was wrong with it, for a person; it is then ordinary text


NO_FRONT_MATTER = FrontMatter(values={}, lines=0, problem=None)


class _RefusedError(Exception):
    """Valid YAML of a kind that front matter does not need and that could do harm."""


def read_front_matter(text: str) -> FrontMatter:
    """Read the front matter of a text; never raises, whatever the text."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return NO_FRONT_MATTER
    if closing.start() - opening.end() > _MAX_CHARACTERS:
        return _broken(f"front matter is longer than {_MAX_CHARACTERS // 1024} KiB")
    try:
        value = _build(yaml.parse(text[opening.end() : closing.start()], Loader=_LOADER))
    except _RefusedError as refused:
        return _broken(f"front matter {refused}")
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        return _broken(f"front matter is not valid YAML{line}: {error.problem or error.context}")
    except (yaml.YAMLError, ValueError):  # ValueError: characters that YAML does not allow
        return _broken("front matter is not valid YAML: it contains characters that YAML does not allow")
    lines = text.count("\n", 0, closing.end()) + (not closing.group().endswith("\n"))
    if value is None:
        return FrontMatter(values={}, lines=lines, problem=None)
    if not isinstance(value, dict):
        return NO_FRONT_MATTER  # prose between two rules
    return FrontMatter(values=value, lines=lines, problem=None)


def _broken(problem: str) -> FrontMatter:
    return FrontMatter(values={}, lines=0, problem=problem)


def _build(events: Iterator[yaml.Event]) -> Any:
    """Build plain values; the stack holds the open containers, each with the key that waits for a value."""
    root: list[Any] = []
    stack: list[tuple[list[Any] | dict[str, Any], list[str]]] = [(root, [])]
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError("uses YAML aliases, which are not read")
        if isinstance(event, yaml.ScalarEvent):
            _put(stack, _scalar(event))
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(stack) > _MAX_DEPTH:
                raise _RefusedError(f"is nested more than {_MAX_DEPTH} levels deep")
            container: list[Any] | dict[str, Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
            _put(stack, container)
            stack.append((container, []))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            stack.pop()
    return root[0] if root else None


def _put(stack: list[tuple[list[Any] | dict[str, Any], list[str]]], value: Any) -> None:
    container, key = stack[-1]
    if isinstance(container, list):
        container.append(value)
    elif key:
        container[key.pop()] = value
    elif isinstance(value, (list, dict)):
        raise _RefusedError("has a list or a mapping as a key")
    else:
        key.append(value if isinstance(value, str) else _key(value))


def _key(value: float | bool | None) -> str:
    return json.dumps(value)


def _scalar(event: yaml.ScalarEvent) -> str | int | float | bool | None:
    """The value of a scalar by the core rules of YAML 1.2: `10:30`, `no` and `007` stay what was written."""
    text: str = event.value
    if event.style or event.tag:
        return text
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and not text.isdigit():
        number = float(text)
        return number if math.isfinite(number) else text
    return _iso(text)


def _iso(text: str) -> str:
    """A date or a time as ISO 8601, any other text unchanged."""
    if (day := _DATE.match(text)) is None:
        return text
    padded = f"{day[1]}-{int(day[2]):02}-{int(day[3]):02}{text[day.end() :]}"
    try:
        if day.end() == len(text):
            return date.fromisoformat(padded).isoformat()
        return datetime.fromisoformat(padded).isoformat()
    except ValueError:
        return text
