"""Two embedding models on one's own notes: how quick each is, and how well it finds what it should.

Nobody has written questions for these notes, so they are made from the notes themselves: a sentence is taken out of a
passage, and what is left of the passage has to be found by it among all others. That says little about a model by
itself and much about two of them side by side.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memoryd.jobs.chunking import split_passages
from memoryd.jobs.reading import decode_text, read_file
from memoryd.jobs.workspace import Workspace, scan
from memoryd.store.model import embedding_text
from memoryd.store.protocols import Embedder
from memoryd.store.search.bootstrap import mean_intervals

MOST_PASSAGES: Final = 600  # enough to tell two models apart in a minute or two
MOST_QUESTIONS: Final = 200
_FEWEST_WORDS: Final = 5  # of a sentence that can stand for a question
_TIMED_QUERIES: Final = 30
_SENTENCE: Final = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


@dataclass(frozen=True, slots=True)
class Cloze:
    """A sentence, and where the passage is that it was taken out of."""

    question: str
    place: int  # among the passages


@dataclass(frozen=True, slots=True)
class Exam:
    """What both models are given."""

    passages: tuple[str, ...]
    questions: tuple[Cloze, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What one model made of it."""

    model: str
    dimension: int
    passages_per_s: float
    query_ms: float  # one query, the median
    found_first: float  # share of the questions
    found_in_ten: float
    mrr: float
    ranks: tuple[int, ...]  # of each question's passage, from 1

    def as_json(self) -> dict[str, object]:
        told = asdict(self)
        del told["ranks"]
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in told.items()}


def read_notes(workspaces: Iterable[Workspace], most_bytes: int) -> list[str]:
    """The passages of all notes."""
    found = []
    for workspace in workspaces:
        for path in sorted(scan(workspace).files):
            file = read_file(workspace.root / path, workspace.root, most_bytes)
            text = decode_text(file.data)[0] if file and not file.too_large else None
            if text is not None:
                found += [passage.text for passage in split_passages(text) if embedding_text(passage)]
    return found


def set_exam(passages: Sequence[str], seed: int = 0) -> Exam:
    """A sample of the passages, the same each time, and questions made from as many of them as allow it."""
    chance = random.Random(seed)  # noqa: S311 - nothing is secret here
    chosen = list(dict.fromkeys(passages))
    chance.shuffle(chosen)
    kept: list[str] = []
    questions: list[Cloze] = []
    for passage in chosen[:MOST_PASSAGES]:
        sentences = [found for found in _SENTENCE.findall(passage) if _is_telling(found)]
        if len(sentences) > 1 and len(questions) < MOST_QUESTIONS:
            taken = chance.choice(sentences)
            questions.append(Cloze(taken.strip(), len(kept)))
            passage = passage.replace(taken, " ", 1)
        kept.append(passage)
    return Exam(tuple(kept), tuple(questions))


def _is_telling(sentence: str) -> bool:
    return len(sentence.split()) >= _FEWEST_WORDS or (len(sentence) >= 10 and not sentence.isascii())


def sit_exam(embedder: Embedder, exam: Exam) -> Result:
    embedder.embed_query("warm up")
    began = time.perf_counter()
    vectors = embedder.embed_documents(exam.passages)
    took = time.perf_counter() - began
    times, asked = [], []
    for cloze in exam.questions:
        start = time.perf_counter()
        asked.append(embedder.embed_query(cloze.question))
        times.append((time.perf_counter() - start) * 1000)
    places = np.array([cloze.place for cloze in exam.questions], int)
    ranks = _ranks(np.stack(asked) @ vectors.T, places) if asked else np.empty(0, int)
    return Result(
        embedder.identity.model,
        embedder.identity.dimension,
        len(exam.passages) / took if took else 0.0,
        median(times[-_TIMED_QUERIES:]) if times else 0.0,
        float((ranks == 1).mean()) if len(ranks) else 0.0,
        float((ranks <= 10).mean()) if len(ranks) else 0.0,
        float((1 / ranks).mean()) if len(ranks) else 0.0,
        tuple(int(rank) for rank in ranks),
    )


def _ranks(cosines: NDArray[np.float32], places: NDArray[np.int_]) -> NDArray[np.int_]:
    own = cosines[np.arange(len(places)), places][:, None]
    ranks: NDArray[np.int_] = (cosines > own).sum(axis=1) + 1
    return ranks


def difference(one: Result, other: Result) -> tuple[float, float, float]:
    """How much more of the questions the other finds first, and the bounds of that with 95 % confidence."""
    if not one.ranks:
        return 0.0, 0.0, 0.0
    change = np.array([(b == 1) - (a == 1) for a, b in zip(one.ranks, other.ranks, strict=True)], float)
    low, high = mean_intervals(change[:, None])[0]
    return float(change.mean()), float(low), float(high)
