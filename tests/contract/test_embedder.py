"""What every embedder guarantees: the fake, llama.cpp, and every provider over its own API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from memoryd.jobs.embedders.llama import LlamaEmbedder
from memoryd.jobs.embedders.sleeper import Sleeper
from memoryd.store.errors import EmbedderUnavailable
from memoryd.store.interruption import Interruption
from memoryd.store.protocols import Embedder, Vectors
from tests.support.embedding_apis import APIS
from tests.support.embedding_server import KEY, run_embedding_server
from tests.support.fake_embedder import FakeEmbedder
from tests.support.llama_server import run_llama_server
from tests.support.remote import connect

TEXTS = (
    "The gateway restarts after its configuration changed.",
    "Ana prefers tea.",
    "naïve café résumé — Ångström",
    "记忆搜索守护进程在后台运行",
    "日本語のメモ。検索できる。",
    "a",
    "A long note. " + "The daemon watches the folder and indexes what changes. " * 30,
    "`memoryd run --config ~/.config/memoryd/config.toml`",
    "",
    "😀 emoji 👩‍💻",
)


class Remembering(LlamaEmbedder):
    """The real model behind every provider's API; what it has embedded for one it need not for the next."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._known: dict[str, Vectors] = {}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in texts if text not in self._known]
        self._known.update(zip(unknown, super().embed_documents(unknown), strict=True))
        return np.array([self._known[text] for text in texts], np.float32)


@pytest.fixture(scope="module")
def model(default_model: Path) -> Iterator[Remembering]:
    with closing(Remembering(default_model)) as made:
        yield made


@pytest.fixture(scope="module")
def llama_server(default_model: Path) -> Iterator[str]:
    with run_llama_server(default_model, KEY) as url:
        yield url


Make = Callable[[], Embedder]


@pytest.fixture(params=["fake", "llama", "llama, asleep", *APIS, "llama.cpp's server"], scope="module")
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    path: Path = request.getfixturevalue("default_model")
    match request.param:
        case "fake":
            yield FakeEmbedder
        case "llama":
            yield lambda: LlamaEmbedder(path)
        case "llama, asleep":

            def make_asleep() -> Sleeper:
                sleeper = Sleeper(lambda: LlamaEmbedder(path))
                sleeper.sleep(0)
                return sleeper

            yield make_asleep
        case "llama.cpp's server":
            url: str = request.getfixturevalue("llama_server")
            yield lambda: connect("openai-compatible", url, model="minilm")
        case provider:
            with run_embedding_server(APIS[provider], request.getfixturevalue("model")) as server:
                yield lambda: connect(provider, server.url)


@pytest.fixture(scope="module")
def embedder(make: Make) -> Iterator[Embedder]:
    made = make()
    yield made
    made.close()


def test_rows_are_float32_unit_vectors_of_the_stated_dimension(embedder: Embedder) -> None:
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.identity.dimension)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_query_is_one_unit_vector(embedder: Embedder) -> None:
    vector = embedder.embed_query("where is the gateway")
    assert vector.dtype == np.float32
    assert vector.shape == (embedder.identity.dimension,)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_what_nobody_interrupts_is_embedded_as_ever(embedder: Embedder) -> None:
    vectors = embedder.embed_or_yield(TEXTS[:3], Interruption())
    assert vectors is not None
    assert np.sum(vectors * embedder.embed_documents(TEXTS[:3]), axis=1).min() > 1 - 1e-3


def test_what_is_let_go_of_leaves_no_trace(embedder: Embedder) -> None:
    before = embedder.embed_documents(TEXTS[:3])
    interruption = Interruption()
    interruption.wish()
    yielded = embedder.embed_or_yield(TEXTS[:3], interruption)
    assert yielded is None or np.sum(yielded * before, axis=1).min() > 1 - 1e-3
    assert np.sum(embedder.embed_documents(TEXTS[:3]) * before, axis=1).min() > 1 - 1e-3
    assert np.linalg.norm(embedder.embed_query("still there")) == pytest.approx(1.0, abs=1e-5)


def test_rows_come_back_in_the_order_of_the_texts(embedder: Embedder) -> None:
    together = embedder.embed_documents(TEXTS)
    backwards = embedder.embed_documents(TEXTS[::-1])[::-1]
    assert np.sum(together * backwards, axis=1).min() > 1 - 1e-3


def test_a_text_has_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    together = embedder.embed_documents(TEXTS)
    alone = np.stack([embedder.embed_documents([text])[0] for text in TEXTS])
    assert np.sum(together * alone, axis=1).min() > 1 - 1e-3


def test_more_texts_than_one_batch_holds_are_all_answered(embedder: Embedder) -> None:
    texts = [f"note number {number}" for number in range(300)]
    vectors = embedder.embed_documents(texts)
    alone = embedder.embed_documents([texts[217]])[0]
    assert vectors.shape[0] == 300
    assert vectors[217] @ alone > 1 - 1e-3


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.identity.dimension)


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\x00", "\ud800 lone surrogate", "￿", "[SEP] [MASK]"])
def test_strange_text_is_survived(embedder: Embedder, text: str) -> None:
    assert np.linalg.norm(embedder.embed_documents([text])[0]) == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


def test_text_longer_than_the_context_is_cut(embedder: Embedder) -> None:
    head = "the daemon watches the folder " * 400
    vectors = embedder.embed_documents([head + "and then something else entirely " * 5000, head, "x" * 200_000])
    assert vectors[0] @ vectors[1] > 1 - 1e-3


def test_near_in_meaning_is_near_in_space(embedder: Embedder) -> None:
    query = embedder.embed_query("restart the gateway")
    vectors = embedder.embed_documents(
        ["How to restart the gateway after an update", "Bread needs flour, water, salt and time"]
    )
    assert query @ vectors[0] > query @ vectors[1] + 0.2


def test_tokens_are_counted_without_the_model_s_own_marks(embedder: Embedder) -> None:
    assert embedder.count_tokens("") == 0
    assert embedder.count_tokens("hello world") == 2
    assert embedder.count_tokens("hello world " * 1000) == 2000


def test_identity_does_not_change_while_it_runs(embedder: Embedder) -> None:
    before = embedder.identity
    embedder.embed_documents(TEXTS)
    assert embedder.identity == before
    assert before.model
    assert before.fingerprint


def test_two_of_the_same_have_the_same_identity_and_vectors(embedder: Embedder, make: Make) -> None:
    with closing(make()) as other:
        assert other.identity == embedder.identity
        assert other.embed_query("the gateway") @ embedder.embed_query("the gateway") > 1 - 1e-3


def test_embedder_that_is_well_is_not_held_back(embedder: Embedder) -> None:
    embedder.embed_query("anything")
    embedder.try_again()
    assert embedder.hold() is None
    assert embedder.batch >= 1


def test_closed_embedder_says_so_and_can_be_closed_again(make: Make) -> None:
    other = make()
    other.close()
    other.close()
    with pytest.raises(EmbedderUnavailable) as caught:
        other.embed_documents(["anything"])
    assert caught.value.hint
    with pytest.raises(EmbedderUnavailable):
        other.count_tokens("anything")


def test_vectors_of_llama_cpp_s_server_are_those_of_the_model_in_memoryd(llama_server: str, model: Remembering) -> None:
    texts = [text for text in TEXTS if text]
    with closing(connect("openai-compatible", llama_server, model="minilm")) as remote:
        assert np.abs(remote.embed_documents(texts) - model.embed_documents(texts)).max() < 1e-3
        assert np.abs(remote.embed_query("where is it?") - model.embed_query("where is it?")).max() < 1e-3
