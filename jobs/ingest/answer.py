"""What a language model said, as statements. Whatever comes back is taken apart; what makes no sense is counted.

A model that was asked for JSON lines answers with lines, an array, an object around an array, fences, prose before
and after, commas too many, thoughts, and halves where it ran out of tokens.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from memoryd.jobs.ingest.prompt import CATEGORIES, MOST_FACTS
from memoryd.store.lifespans import decay_class

LONGEST: Final = 500  # characters of a statement
SHORTEST: Final = 8
_MOST_CHARS: Final = 200_000  # of an answer that are looked at
_MOST_TAGS: Final = 5

_THOUGHTS: Final = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"^\s*(?:```|~~~).*$", re.MULTILINE)
_COMMA: Final = re.compile(r",(\s*[}\]])")
_NAMES: Final = ("fact", "text", "statement", "content", "sentence")
_LISTS: Final = ("facts", "items", "results", "statements")


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as the model put it: one line of plain text."""

    text: str
    category: str = "other"
    tags: tuple[str, ...] = ()
    decay: str | None = None  # None: it does not say


@dataclass(frozen=True, slots=True)
class Parsed:
    statements: tuple[Statement, ...]
    bad: int = 0  # lines, or objects, that were none


def parse_answer(answer: str) -> Parsed:
    """Never raises, whatever the answer."""
    text = _FENCE.sub("", _THOUGHTS.sub("", answer[:_MOST_CHARS])).strip()
    found: list[Statement] = []
    bad = 0
    for value in _read_values(text):
        statement = None if value is None else _statement(value)
        if statement is None:
            bad += 1
        elif all(statement.text.casefold() != other.text.casefold() for other in found):
            found.append(statement)
    return Parsed(tuple(found[:MOST_FACTS]), bad + max(0, len(found) - MOST_FACTS))


def _read_values(text: str) -> Iterator[Any]:
    """What may be a fact, one by one; None for what is not even JSON."""
    whole = _load(text)
    if isinstance(whole, (dict, list)):
        yield from _unpack(whole)
        return
    if (start := text.find("[")) >= 0 and isinstance(inside := _load(text[start : text.rfind("]") + 1]), list):
        yield from _unpack(inside)
        return
    rest = text
    while rest:
        opening = rest.find("{")
        prose, rest = (rest, "") if opening < 0 else (rest[:opening], rest[opening:])
        yield from (None for line in prose.splitlines() if any(char.isalnum() for char in line))
        if rest:
            length = _object_length(rest)
            value = _load(rest[:length])
            if isinstance(value, dict):
                yield from _unpack(value)
            else:
                yield None
            rest = rest[length:]


def _object_length(text: str) -> int:
    """How far the object goes that the text begins with; to the end of its line where it does not end."""
    depth = 0
    quoted = escaped = False
    for place, char in enumerate(text):
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
            elif char == "\n":
                break  # no text of ours goes over a line end
        elif char == '"':
            quoted = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth <= 0:
                return place + 1
    line_end = text.find("\n")
    return len(text) if line_end < 0 else line_end + 1


def _load(text: str) -> Any:
    for attempt in (text, _COMMA.sub(r"\1", text)):
        try:
            return json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _unpack(value: Any, depth: int = 0) -> Iterator[Any]:
    """The objects in an array, or in an object around one."""
    if isinstance(value, list) and depth < 4:
        for item in value:
            yield from _unpack(item, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        inside = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        if inside is not None and not any(isinstance(value.get(name), str) for name in _NAMES):
            yield from _unpack(inside, depth + 1)
        else:
            yield value
    else:
        yield value


def _statement(value: Any) -> Statement | None:
    if isinstance(value, str):
        value = {"fact": value}
    if not isinstance(value, dict):
        return None
    said = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), "")
    text = clean_text(said)
    if not SHORTEST <= len(text) <= LONGEST or not any(char.isalpha() for char in text):
        return None
    category = slug(value.get("category"))
    tags = value.get("tags")
    listed = tags if isinstance(tags, list) else []
    named = dict.fromkeys(filter(None, (slug(tag) for tag in listed[:_MOST_TAGS])))
    return Statement(
        text, category if category in CATEGORIES else "other", tuple(named), decay_class(value.get("decay"))
    )


def clean_text(text: str) -> str:
    """One line without what controls a terminal, hides, or turns the direction of writing around."""
    kept = (char if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn") else " " for char in text)
    return " ".join(_joined(text, kept).split())


def _joined(text: str, kept: Iterator[str]) -> str:
    # The joiners inside words (ZWNJ, ZWJ) belong to scripts and emoji; they stay where letters or symbols touch them.
    result = list(kept)
    for place, char in enumerate(text):
        if char in "\u200c\u200d" and 0 < place < len(text) - 1 and not text[place - 1].isspace():
            result[place] = char
    return "".join(result)


def slug(value: object) -> str:
    """A short word for a category or a tag; "" where it is none."""
    if not isinstance(value, str):
        return ""
    return re.sub(r"[^\w]+", "-", clean_text(value).lower())[:40].strip("-_")
