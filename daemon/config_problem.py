"""How a configuration problem is put: where it is, what was found, what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
ASSIGNMENT = re.compile(r"""\s*([\w.\-"' ]+?)\s*=""")


def describe(value: object, longest: int = 60) -> str:
    """A value as it was found, short and on one line."""
    import json  # only a mistake pays for it

    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        odd = next((item for item in value if not isinstance(item, str)), None)
        return "a list" if odd is None else f"a list with {describe(odd)}"
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a huge number"  # Python refuses to print integers of thousands of digits
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, bool | str) else str(value)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def quote_key(key: str) -> str:
    """A key as TOML would write it, so that an odd one is told from a dotted one."""
    return key if re.fullmatch(r"[\w-]+", key) else describe(key)


def did_you_mean(word: str, nearby: Iterable[str], elsewhere: Iterable[str] = ()) -> str:
    """A question about the key that resembles the word, whole or in its last part; empty where none does."""
    from difflib import get_close_matches  # only a mistake pays for it

    for keys, cutoff in ((nearby, 0.6), (elsewhere, 0.75)):
        names = {name: key for key in keys for name in (key.rpartition(".")[2], key)}
        for near in get_close_matches(word, names, n=1, cutoff=cutoff):
            return f"; did you mean {names[near]}?"
    return ""


def find_line(text: str, key: str) -> int | None:
    """The line of a dotted key, found by looking rather than parsing: good enough to point a person at it.

    The second ``[[workspace]]`` block is ``workspace[2]``. A key without a line of its own has its table's.
    """
    table, blocks = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := HEADER.match(line):
            table = _plain(header[2])
            if header[1] == "[[":
                blocks[table] = blocks.get(table, 0) + 1
                table = f"{table}[{blocks[table]}]"
            if table == key:
                return number
        elif assignment := ASSIGNMENT.match(line):
            name = _plain(assignment[1])
            if key == (f"{table}.{name}" if table else name):
                return number
    parent = key.rpartition(".")[0]
    return find_line(text, parent) if parent else None


def _plain(key: str) -> str:
    return ".".join(part.strip(" \t\"'") for part in key.split("."))
