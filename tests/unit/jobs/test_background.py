"""Work in the background, and models that are closed before they are there."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from memoryd.jobs.llm import local
from memoryd.jobs.llm.local import LocalModel
from memoryd.jobs.rerankers.late import LateReranker
from memoryd.store.errors import LanguageModelUnavailable, RerankerUnavailable
from tests.support.waiting import eventually


class Loaded:
    """A model whose loading takes until it is let go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.loading = threading.Event()
        self.closed = threading.Event()

    def load(self, *_args: object, **_options: object) -> Loaded:
        self.loading.set()
        assert self.go_on.wait(60)
        return self

    def reads(self, _script: str) -> bool:
        return True

    def score(self, _query: str, passages: Sequence[str], _deadline: float) -> list[float]:
        return [1.0] * len(passages)

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def loaded() -> Loaded:
    return Loaded()


def test_language_model_that_is_closed_while_it_is_loaded_is_freed_when_it_is_there(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local, "LlamaGenerator", loaded.load)
    model = LocalModel(tmp_path / "model.gguf")
    with pytest.raises(LanguageModelUnavailable, match="still being loaded"):
        model.complete([], max_tokens=1, timeout_s=0.05)
    model.close()
    assert not loaded.closed.is_set()
    loaded.go_on.set()
    assert loaded.closed.wait(60)


def test_reranker_that_is_closed_while_it_is_loaded_is_freed_when_it_is_there(loaded: Loaded) -> None:
    late = LateReranker(loaded.load)
    with pytest.raises(RerankerUnavailable, match="still being loaded"):
        late.score("query", ["passage"], time.monotonic() + 1)
    late.close()
    assert not loaded.closed.is_set()
    loaded.go_on.set()
    assert loaded.closed.wait(60)
    with pytest.raises(RerankerUnavailable, match="closed"):
        late.score("query", ["passage"], time.monotonic() + 1)


def test_reranker_that_is_closed_while_it_reads_is_freed_by_who_reads(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.jobs.rerankers.late._CLOSING_S", 0.05)
    reading, go_on = threading.Event(), threading.Event()

    def read(_query: str, passages: Sequence[str], _deadline: float) -> list[float]:
        reading.set()
        assert go_on.wait(60)
        assert not loaded.closed.is_set()
        return [1.0] * len(passages)

    monkeypatch.setattr(loaded, "score", read)
    loaded.go_on.set()
    late = LateReranker(loaded.load)
    late.wait(60)
    scores: list[list[float]] = []
    reader = threading.Thread(target=lambda: scores.append(late.score("query", ["one"], time.monotonic() + 60)))
    reader.start()
    assert reading.wait(60)
    late.close()
    go_on.set()
    reader.join(60)
    assert scores == [[1.0]]
    eventually(loaded.closed.is_set, what="it is closed")
