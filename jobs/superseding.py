"""What front matter says about notes that are out of date: ``superseded_by:`` here, ``supersedes:`` in another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from memoryd.store.model import Superseding

_MOST_NAMES = 1000
_LINK = re.compile(r"\[\[([^\]|#]*).*\]\]", re.DOTALL)


def read_superseding(path: str, front_matter: Mapping[str, Any]) -> tuple[tuple[Superseding, ...], list[str]]:
    """The statements of one document, and what a person should know about them."""
    found: list[Superseding] = []
    notices: list[str] = []
    for key, is_newer in (("superseded_by", False), ("supersedes", True)):
        names = list(islice(_names(front_matter.get(key)), _MOST_NAMES + 1))
        if len(names) > _MOST_NAMES:
            notices.append(f"{key}: only the first {_MOST_NAMES:,} names are read")
        for name in names[:_MOST_NAMES]:
            places = possible_places(path, name)
            if not places:
                notices.append(f"{key}: {name[:60]!r} is not a path inside the workspace")
            if places or not is_newer:  # whatever it is superseded by, its author says that it is
                found.append(Superseding(is_newer, places))
    return tuple(found), notices


def _names(value: Any, depth: int = 0) -> Iterator[str]:
    """YAML reads ``[[name]]`` without quotes as a list in a list."""
    if isinstance(value, list):
        for item in value:
            yield from _names(item, depth + 1)
    elif value is not None and value is not False and str(value).strip():
        yield f"[[{value}]]" if depth > 1 else str(value)


def possible_places(path: str, name: str) -> tuple[str, ...]:
    """The paths that a name can stand for in the document at ``path``, the likeliest first; none outside the workspace.

    A name is looked for in the document's own folder and then in each folder above it, with and without ``.md``;
    after ``./`` or ``../`` only from its own folder, after ``/`` only from the workspace.
    """
    link = _LINK.fullmatch(name.strip())
    name = (link[1] if link else name).strip()
    own = path.split("/")[:-1]
    folders: list[list[str]]
    if name.startswith("/"):
        folders = [[]]
    elif name.startswith(("./", "../")):
        folders = [own]
    else:
        folders = [own[:depth] for depth in range(len(own), -1, -1)]
    places: dict[str, None] = {}
    for folder in folders:
        if place := _resolve(folder, name):
            places[place] = None
            if not place.lower().endswith(".md"):
                places[f"{place}.md"] = None
    return tuple(places)


def _resolve(folder: list[str], name: str) -> str:
    """The path without ``.`` and ``..``; "" where it leads out of the workspace or names nothing."""
    *_, last = name.split("/")
    if last in ("", ".", ".."):
        return ""
    parts = list(folder)
    for part in name.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
