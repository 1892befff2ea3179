"""The cheap vectors of ``make bench``'s large memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.fake_embedder import FakeEmbedder
from tools.bench_words import WordsEmbedder


def test_vectors_are_of_length_one_and_do_not_depend_on_the_batch() -> None:
    embedder = WordsEmbedder(FakeEmbedder())
    texts = ["we moved the frost trellis", "今天 我们 讨论", "2026 17", ""]
    together = embedder.embed_documents(texts)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.allclose(together, [WordsEmbedder(FakeEmbedder()).embed_documents([text])[0] for text in texts])


def test_texts_that_share_words_are_near_each_other_and_near_the_query() -> None:
    embedder = WordsEmbedder(FakeEmbedder())
    frost, sauce = embedder.embed_documents(["frost on the trellis at night", "simmer the saffron sauce slowly"])
    query = embedder.embed_query("trellis frost")
    assert frost @ query > sauce @ query


def test_word_is_embedded_once_and_a_query_every_time() -> None:
    model = FakeEmbedder()
    embedder = WordsEmbedder(model)
    embedder.embed_documents(["frost frost trellis", "trellis in 2026"])
    embedder.embed_documents(["in frost"])
    assert sorted(model.texts) == ["frost", "in", "trellis"]
    embedder.embed_query("frost")
    embedder.embed_query("frost")
    assert model.query_calls == 2


def test_vectors_stand_in_the_models_place() -> None:
    """A daemon that has the model takes them for its own, and embeds nothing anew."""
    model = FakeEmbedder()
    assert WordsEmbedder(model).identity == model.identity


def test_words_are_known_in_the_next_run_with_the_same_model(tmp_path: Path) -> None:
    first = WordsEmbedder(FakeEmbedder())
    before = first.embed_documents(["frost on the trellis"])
    first.remember(tmp_path / "words.npz")
    model = FakeEmbedder()
    again = WordsEmbedder(model)
    again.recall(tmp_path / "words.npz")
    assert np.allclose(again.embed_documents(["frost on the trellis"]), before)
    assert model.texts == []
    stranger = FakeEmbedder(fingerprint="another")
    other = WordsEmbedder(stranger)
    other.recall(tmp_path / "words.npz")
    other.embed_documents(["frost"])
    assert stranger.texts == ["frost"]
