"""What every reranker guarantees: a cross-encoder as a GGUF, as an ONNX graph, and as the daemon has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.jobs.rerankers.late import LateReranker
from memoryd.jobs.rerankers.llama import LlamaReranker
from memoryd.jobs.rerankers.onnx import OnnxReranker
from memoryd.store.errors import MemorydError, ModelCorrupt, ModelMissing, RerankerUnavailable
from memoryd.store.protocols import Reranker
from tests.support.other_models import BGE_SMALL, CROSS_ENCODER, provide, provide_files
from tests.support.waiting import eventually

NEVER = float("inf")
QUERY = "how long does the battery of the red drone last"
PASSAGES = [
    "The invoice of March was paid twice by mistake.",
    "The red drone flies for about 25 minutes on one battery charge.",
    "The red drone was bought in Lisbon.",
]


@pytest.fixture(scope="session")
def gguf(other_models: Path) -> Path:
    return provide(CROSS_ENCODER, other_models)


@pytest.fixture(scope="session")
def graph(other_models: Path) -> Path:
    return provide_files(CROSS_ENCODER, other_models) / "model.onnx"


def make(kind: str, request: pytest.FixtureRequest) -> Reranker:
    if kind == "llama":
        return LlamaReranker(request.getfixturevalue("gguf"))
    graph: Path = request.getfixturevalue("graph")
    if kind == "onnx":
        return OnnxReranker(graph)
    late = LateReranker(lambda: OnnxReranker(graph))
    late.wait(60)
    return late


@pytest.fixture(scope="module", params=["llama", "onnx", "late"])
def reranker(request: pytest.FixtureRequest) -> Iterator[Reranker]:
    made = make(request.param, request)
    yield made
    made.close()


def test_the_passage_that_answers_scores_best(reranker: Reranker) -> None:
    scores = reranker.score(QUERY, PASSAGES, NEVER)
    assert len(scores) == 3
    assert scores[1] > scores[2] > scores[0]


def test_scores_do_not_depend_on_what_else_is_read(reranker: Reranker) -> None:
    together = reranker.score(QUERY, PASSAGES, NEVER)
    alone = [reranker.score(QUERY, [passage], NEVER)[0] for passage in reversed(PASSAGES)]
    assert alone[::-1] == pytest.approx(together, abs=1e-3)


def test_any_text_is_read(reranker: Reranker) -> None:
    long = "battery " * 5000
    odd = ["", " ", "\0", "水曜日に会う", "👩‍🚀" * 300, long]
    assert len(reranker.score(QUERY, odd, NEVER)) == len(odd)
    assert len(reranker.score(long, ["short"], NEVER)) == 1
    assert len(reranker.score("", ["short"], NEVER)) == 1


def test_it_stops_at_the_deadline(reranker: Reranker) -> None:
    fresh = [f"a passage that nobody has read so far, number {number}" for number in range(500)]
    assert reranker.score(QUERY, fresh, time.monotonic()) == []
    began = time.monotonic()
    reranker.score(QUERY, fresh[:20], NEVER)
    each = (time.monotonic() - began) / 20
    scores = reranker.score(QUERY, fresh[20:], time.monotonic() + 10 * each)
    assert 0 < len(scores) < len(fresh) - 20


@pytest.mark.parametrize("kind", ["llama", "onnx", "late"])
def test_closed_it_says_so(kind: str, request: pytest.FixtureRequest) -> None:
    made = make(kind, request)
    made.close()
    made.close()
    with pytest.raises(RerankerUnavailable):
        made.score(QUERY, PASSAGES, NEVER)


# -- each alone --------------------------------------------------------------------------------------------


def test_it_knows_which_scripts_it_reads(reranker: Reranker) -> None:
    assert reranker.reads("latin")
    assert not any(reranker.reads(script) for script in ("han", "cyrillic", "arabic", "hangul", ""))


def test_model_that_ranks_nothing_is_refused(other_models: Path) -> None:
    with pytest.raises(ModelCorrupt, match="ranks nothing"):
        LlamaReranker(provide(BGE_SMALL, other_models))


def test_what_is_no_graph_is_refused(graph: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing):
        OnnxReranker(tmp_path / "model.onnx")
    (tmp_path / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ModelMissing, match="tokenizer"):
        OnnxReranker(tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((graph.parent / "tokenizer.json").read_bytes())
    with pytest.raises(ModelCorrupt):
        OnnxReranker(tmp_path / "model.onnx")


def test_nobody_waits_for_the_loading_and_what_failed_is_told(graph: Path) -> None:
    loads: list[MemorydError] = []

    def fail() -> Reranker:
        loads.append(ModelMissing("there is no such file", hint="Bring it."))
        raise loads[-1]

    late = LateReranker(fail)
    with pytest.raises(MemorydError):
        late.score(QUERY, PASSAGES, NEVER)

    def told() -> bool:
        with pytest.raises(MemorydError) as caught:
            late.score(QUERY, PASSAGES, NEVER)
        return caught.value.code == "model_missing"

    eventually(told, what="the reason is known")
    assert told()
    assert len(loads) == 1, "it is not tried again by every query"


def test_what_was_read_is_remembered(graph: Path) -> None:
    late = LateReranker(lambda: OnnxReranker(graph))
    late.wait(60)
    scores = late.score(QUERY, PASSAGES, NEVER)
    assert late.score(QUERY, PASSAGES, 0.0) == scores
    assert late.score("another question", PASSAGES, 0.0) == []
