"""Drift: a place where disk, ledger, keyword indexes and vectors do not say the same. Names and numbers, never text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# Every kind of drift there is, and what it means of one document.
KINDS = {
    "missing": "is on disk, but not in the index",
    "stale": "changed on disk and was not read again",
    "orphan": "is gone, or never was, and something of it is left",
    "duplicate": "has rows that are there twice",
    "wrong_lines": "has the right text under the wrong line numbers",
    "wrong_rows": "has rows that are not what the file gives",
    "missing_keywords": "has chunks that the keyword index lacks",
    "wrong_keywords": "has chunks whose keyword rows hold other words",
    "missing_vector": "has passages without their vector",
    "stale_vector": "has vectors that are not those of its passages",
    "unmarked": "has vectors that the ledger does not know of",
    "unsearched": "has vectors that no search looks at",
    "unavailable": "could not be looked at",
}


@dataclass(frozen=True, slots=True)
class Drift:
    kind: str  # one of KINDS
    store: str  # where: "disk", "ledger", "keywords" or "vectors"
    workspace: str  # "" where it is about no workspace
    path: str  # "" where it is about no document
    count: int  # rows, or documents where it is about no one document
    message: str  # a sentence for people

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What it is about: two looks that find the same drift agree on this."""
        return (self.kind, self.store, self.workspace, self.path)


def make_drift(kind: str, store: str, workspace: str, path: str, count: int = 1, detail: str = "") -> Drift:
    subject = path or workspace or "the index"
    rows = f" ({count:,} rows)" if count > 1 else ""
    return Drift(kind, store, workspace, path, count, f"{subject} {detail or KINDS[kind]}{rows}")


def count_kinds(drift: Iterable[Drift]) -> dict[str, int]:
    return dict(sorted(Counter(entry.kind for entry in drift).items()))
