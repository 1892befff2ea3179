"""The vector that a query is searched by, with a hypothetical answer and without."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from memoryd.store.errors import EmbedderUnavailable, LanguageModelMissing, LanguageModelUnavailable
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.hypothesis import imagine_answer, mean_direction, query_vector, wants_hypothesis
from memoryd.store.search.request import Hyde, SearchQuery, SearchSettings
from tests.support.fake_embedder import FakeEmbedder
from tests.support.memory_vectors import MemoryVectors

QUERY = SearchQuery("where is the key", date(2026, 11, 15))
SETTINGS = SearchSettings()


class Meaning:
    """A vector side that tells how each text was embedded."""

    fingerprint: str | None = None  # as the ledger says

    def __init__(self) -> None:
        self.embedder = FakeEmbedder()
        self.embedded: list[tuple[str, str]] = []

    def knows_query(self, text: str) -> bool:
        return False

    def embed_query(self, text: str) -> Vectors:
        self.embedded.append(("query", text))
        return self.embedder.embed_query(text)

    def embed_passage(self, text: str) -> Vectors:
        self.embedded.append(("passage", text))
        vector: Vectors = self.embedder.embed_documents([text])[0]
        return vector

    def index(self) -> VectorIndex:
        return MemoryVectors(self.embedder.identity.dimension)


class Loading(Meaning):
    def index(self) -> VectorIndex:
        raise EmbedderUnavailable("the model is being loaded", hint="wait a little")


def never(_text: str) -> str:
    raise AssertionError("the language model is not to be asked")


@pytest.mark.parametrize(
    ("configured", "asked", "wanted"),
    [(False, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_the_request_counts_before_the_configuration(configured: bool, asked: bool | None, wanted: bool) -> None:
    settings = replace(SETTINGS, hyde=Hyde(enabled=configured))
    assert wants_hypothesis(replace(QUERY, hyde=asked), settings) is wanted


def test_hypothesis_is_reported_with_its_text() -> None:
    report = imagine_answer(QUERY, SETTINGS, Meaning(), lambda text: f"{text}: by the door")
    assert (report.used, report.text, report.reason) == (True, "where is the key: by the door", None)


@pytest.mark.parametrize(
    "error",
    [
        LanguageModelMissing("no language model is configured", hint="Set llm.provider."),
        LanguageModelUnavailable("it took longer than 8 s", hint="Allow it more time."),
    ],
)
def test_failure_falls_back_and_says_why(error: Exception) -> None:
    def fail(_text: str) -> str:
        raise error

    report = imagine_answer(QUERY, SETTINGS, Meaning(), fail)
    assert not report.used
    assert report.text is None
    assert report.reason == str(error)
    assert report.hint


def test_model_is_not_asked_where_there_is_nothing_to_compare_with() -> None:
    report = imagine_answer(QUERY, SETTINGS, Loading(), never)
    assert (report.used, report.reason, report.hint) == (False, "the model is being loaded", "wait a little")
    off = replace(SETTINGS, weights={"words": 1.0, "trigram": 0.5, "vector": 0.0})
    assert "off" in (imagine_answer(QUERY, off, Meaning(), never).reason or "")
    assert "empty" in (imagine_answer(replace(QUERY, text=" "), SETTINGS, Meaning(), never).reason or "")
    assert not imagine_answer(QUERY, SETTINGS, Meaning(), None).used


def test_without_a_hypothesis_the_query_is_embedded_as_ever() -> None:
    meaning = Meaning()
    vector = query_vector("the key", None, "average", meaning)
    assert np.array_equal(vector, meaning.embedder.embed_query("the key"))
    assert meaning.embedded == [("query", "the key")]


def test_in_its_place_only_the_hypothesis_is_embedded_and_as_a_note() -> None:
    meaning = Meaning()
    vector = query_vector("the key", "it hangs by the door", "replace", meaning)
    assert np.array_equal(vector, meaning.embedder.embed_query("it hangs by the door"))
    assert meaning.embedded == [("passage", "it hangs by the door")]


def test_together_the_vector_lies_halfway() -> None:
    meaning = Meaning()
    vector = query_vector("the key", "it hangs by the door", "average", meaning)
    one, other = (meaning.embedder.embed_query(text) for text in ("the key", "it hangs by the door"))
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)
    assert vector @ one == pytest.approx(vector @ other, abs=1e-6)
    assert vector @ one > one @ other


def test_of_opposites_the_query_is_kept() -> None:
    one = np.array([1.0, 0.0], np.float32)
    assert np.array_equal(mean_direction(one, -one), one)
