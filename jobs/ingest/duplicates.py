"""Whether a fact was said before: in the same words, or in words that mean the same.

Two sentences that differ in a number or in a "not" are near each other for every embedder, and are not the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.jobs.ingest.fact import Fact, same_text
from memoryd.store.protocols import Vectors
from memoryd.store.scope import GLOBAL

Embed = Callable[[Sequence[str]], Mapping[str, Vectors]]  # of each text its vector of length 1; {} = there is no model

_TELLING = re.compile(r"\S*\d\S*|`[^`]*`|\b(?:not|no|never|without|none|cannot|only)\b|\w+n't\b")


class _Entry(NamedTuple):
    fact: Fact
    words: str
    marks: frozenset[str]


class Known:
    """The facts that hold, to be compared with; one workspace's."""

    def __init__(self, embed: Embed, threshold: float) -> None:
        self._embed = embed
        self._threshold = threshold
        self._facts: dict[str, _Entry] = {}  # by id
        self._vectors: dict[str, Vectors] = {}  # by text

    def add(self, facts: Iterable[Fact]) -> None:
        self._facts.update((fact.id, _Entry(fact, same_text(fact.text), telling(fact.text))) for fact in facts)

    def drop(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self._facts.pop(fact.id, None)

    def prepare(self, texts: Iterable[str]) -> None:
        """Have the vectors at hand of these texts, and of the known facts if there are any such texts."""
        new = [*texts]
        if not new or self._threshold >= 1:
            return
        wanted = dict.fromkeys([*(entry.fact.text for entry in self._facts.values()), *new])
        missing = [text for text in wanted if text not in self._vectors]
        if missing:
            self._vectors.update(self._embed(missing))

    def find(self, fact: Fact) -> Fact | None:
        """The fact that says the same already, and that whoever may see this one may see too."""
        words, marks = same_text(fact.text), telling(fact.text)
        others = [entry for entry in self._facts.values() if _covers(entry.fact, fact)]
        for entry in others:
            if entry.words == words:
                return entry.fact
        vector = self._vectors.get(fact.text)
        alike = [each.fact for each in others if each.marks == marks and each.fact.text in self._vectors]
        if vector is None or not alike:
            return None
        near = np.stack([self._vectors[each.text] for each in alike]) @ vector
        best = int(np.argmax(near))
        return alike[best] if near[best] >= self._threshold else None


def _covers(known: Fact, fact: Fact) -> bool:
    return known.id != fact.id and known.scope in (GLOBAL, fact.scope)


def telling(text: str) -> frozenset[str]:
    """What of a sentence must agree word by word: numbers, code, negations."""
    return frozenset(word.strip(".,;:!?()\"'") for word in _TELLING.findall(text.casefold()))
