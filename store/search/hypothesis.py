"""A made-up answer in the query's place: asked for before the legs run, embedded for the vector leg."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memoryd.store.errors import MemorydError
from memoryd.store.protocols import Vectors
from memoryd.store.search.answer import HydeReport
from memoryd.store.search.request import HydeMode, SearchQuery, SearchSettings, Semantics

Hypothesize = Callable[[str], str]  # raises a MemorydError where there is no hypothesis in time


def wants_hypothesis(query: SearchQuery, settings: SearchSettings) -> bool:
    return settings.hyde.enabled if query.hyde is None else query.hyde


def imagine_answer(
    query: SearchQuery, settings: SearchSettings, semantics: Semantics, hypothesize: Hypothesize | None
) -> HydeReport:
    """The hypothesis, or why the plain query has to do."""
    if settings.weights["vector"] <= 0:
        return HydeReport(used=False, reason="the vector leg is off", hint="Give search.weights.vector a weight.")
    if hypothesize is None:
        return HydeReport(used=False, reason="nothing here can ask a language model")
    if not query.text.strip():
        return HydeReport(used=False, reason="the query is empty")
    try:
        semantics.index()  # without vectors to compare it with, a hypothesis is not worth the wait
        return HydeReport(used=True, text=hypothesize(query.text))
    except MemorydError as error:
        return plain_after_all(error)


def plain_after_all(error: MemorydError) -> HydeReport:
    return HydeReport(used=False, reason=error.message, hint=error.hint)


def query_vector(text: str, hypothesis: str | None, mode: HydeMode, semantics: Semantics) -> Vectors:
    """What the vector leg looks for. A hypothesis is embedded as the notes are, not as a question."""
    if hypothesis is None:
        return semantics.embed_query(text)
    imagined = semantics.embed_passage(hypothesis)
    return imagined if mode == "replace" else mean_direction(semantics.embed_query(text), imagined)


def mean_direction(one: Vectors, other: Vectors) -> Vectors:
    """Halfway between two vectors of length 1; the first where they are opposite and there is no such thing."""
    total = one + other
    length = float(np.linalg.norm(total))
    if length < 1e-6:
        return one
    mean: Vectors = (total / length).astype(np.float32)
    return mean
