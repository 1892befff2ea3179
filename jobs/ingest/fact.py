"""A fact, and the markdown file that it is: front matter with where it comes from, and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

import yaml

from memoryd.jobs.front_matter import read_front_matter
from memoryd.store.lifespans import DEFAULT_CLASS, LIFESPANS, decay_class
from memoryd.store.model import FACTS
from memoryd.store.scope import GLOBAL

TAG: Final = "ingest"
GONE: Final = "gone"  # in superseded_by: its passage is there no more, and no other fact took its place
KEPT_DAYS: Final = 30  # a superseded fact is kept for so long
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Origin:
    workspace: str
    path: str
    start_line: int
    end_line: int
    piece: str  # hash of the piece that the model was asked about


@dataclass(frozen=True, slots=True)
class Fact:
    id: str
    text: str
    origin: Origin
    category: str
    tags: tuple[str, ...]
    decay: str  # class
    created: float  # unix time
    used: float | None = None
    scope: str = GLOBAL
    superseded_by: str | None = None  # the path of another fact, or GONE
    superseded_at: float | None = None

    @property
    def expires(self) -> float | None:
        if self.superseded_at is not None:
            return self.superseded_at + KEPT_DAYS * _DAY
        days = LIFESPANS[self.decay].days
        return None if days is None else max(self.created, self.used or 0.0) + days * _DAY

    def expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


def same_text(text: str) -> str:
    """What two statements have in common that differ in nothing but case, spaces and a full stop."""
    return " ".join(text.casefold().split()).rstrip(" .。")


def fact_id(workspace: str, path: str, text: str) -> str:
    """The same statement of the same file is the same fact, wherever in it it stands."""
    parts = "\0".join((workspace, path, same_text(text))).encode(errors="surrogatepass")
    return blake2b(parts, digest_size=8).hexdigest()


class _Writer(yaml.SafeDumper):
    """Puts all but plain words into double quotes, where nothing ends a line and nothing is taken for a number."""


def _write_text(writer: _Writer, text: str) -> yaml.ScalarNode:
    is_word = text.isascii() and text.isidentifier() and text.lower() not in ("true", "false", "null")
    style = None if is_word else '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _write_text)


def write_fact(fact: Fact) -> str:
    """The file's text. Written by a YAML writer: nothing that a path or a model says can end the front matter."""
    values: dict[str, Any] = {
        "source": FACTS,
        "origin": {
            "workspace": fact.origin.workspace,
            "path": fact.origin.path,
            "lines": [fact.origin.start_line, fact.origin.end_line],
            "hash": fact.origin.piece,
        },
        "category": fact.category,
        "tags": [TAG, *(tag for tag in fact.tags if tag != TAG)],
        "decay": fact.decay,
        "scope": fact.scope,
        "date": _iso(fact.created)[:10],
        "created": _iso(fact.created),
        "used": fact.used and _iso(fact.used),
        "expires": fact.expires and _iso(fact.expires),
        "superseded_by": fact.superseded_by,
        "superseded_at": fact.superseded_at and _iso(fact.superseded_at),
    }
    values = {name: value for name, value in values.items() if value is not None}
    front_matter = yaml.dump(values, Dumper=_Writer, allow_unicode=True, sort_keys=False, width=2**30)
    return f"---\n{front_matter}---\n{fact.text}\n"


def read_fact(identity: str, text: str) -> Fact | None:
    """The fact of a file; None where it is not one. A person may have edited it: what is missing has a default."""
    front_matter = read_front_matter(text)
    values = front_matter.values
    origin = values.get("origin")
    body = " ".join("\n".join(text.split("\n")[front_matter.lines :]).split())
    created = _time(values.get("created")) or _time(values.get("date"))
    if not isinstance(origin, dict) or not body or created is None:
        return None
    lines = origin.get("lines")
    first, last = lines if isinstance(lines, list) and len(lines) == 2 else (1, 1)
    if not isinstance(first, int) or not isinstance(last, int):
        first = last = 1
    tags = values.get("tags")
    superseded_by = values.get("superseded_by")
    return Fact(
        id=identity,
        text=body,
        origin=Origin(
            str(origin.get("workspace")), str(origin.get("path")), first, last, str(origin.get("hash") or "")
        ),
        category=str(values.get("category") or "other"),
        tags=tuple(tag for tag in map(str, tags) if tag != TAG) if isinstance(tags, list) else (),
        decay=decay_class(values.get("decay")) or DEFAULT_CLASS,
        created=created,
        used=_time(values.get("used")),
        scope=str(values.get("scope") or GLOBAL),
        superseded_by=str(superseded_by) if superseded_by else None,
        superseded_at=(_time(values.get("superseded_at")) or created) if superseded_by else None,
    )


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _time(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
