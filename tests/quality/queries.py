"""The quality set: a memory that somebody could have, and what they would ask of it weeks later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from memoryd.store.search.metrics import Span

WORKSPACE = Path(__file__).parent / "workspace"
QUERIES = Path(__file__).parent / "queries.jsonl"
# Nothing answers: the thing is never mentioned; it is, but not this of it; it is of somebody else's life.
FAR = "absent-far"
ABSENT = ("absent", "absent-near", FAR)
NOW = date(2026, 11, 16)  # the day on which all is asked, unless a query says otherwise


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    type: str
    text: str
    gold: tuple[Span, ...]  # any of these answers; none: nothing in the memory does
    older: tuple[Span, ...]  # what was true before, and must come after the gold
    now: date


def read_queries(file: Path = QUERIES) -> list[Query]:
    return [_query(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _query(row: Mapping[str, Any]) -> Query:
    return Query(
        id=row["id"],
        type=row["type"],
        text=row["query"],
        gold=tuple(Span(**item) for item in row["gold"]),
        older=tuple(Span(**item) for item in row.get("older", ())),
        now=date.fromisoformat(row["now"]) if "now" in row else NOW,
    )
