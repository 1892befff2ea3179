"""The remote embedder against a real HTTP server: batches, refusals, waits, time-outs, proxies, the key."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryd.jobs.embedders import breaker
from memoryd.jobs.embedders.budget import Budget
from memoryd.jobs.embedders.remote import RemoteEmbedder
from memoryd.store.errors import EmbedderRefused, EmbedderUnavailable, MemorydError, ProviderUnavailable
from tests.support.clock import SetClock
from tests.support.embedding_apis import COMPATIBLE, GEMINI, MISTRAL, OLLAMA, OPENAI
from tests.support.embedding_server import KEY, Dictated, EmbeddingServer, run_embedding_server
from tests.support.fake_embedder import DenseEmbedder, FakeEmbedder
from tests.support.remote import connect
from tests.support.waiting import eventually

TEXTS = [f"note number {n} about boats" for n in range(10)]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with run_embedding_server(OPENAI, FakeEmbedder()) as server:
        yield server


@pytest.fixture
def clock() -> SetClock:
    return SetClock(1_800_000_000.0)


@pytest.fixture
def remote(server: EmbeddingServer, clock: SetClock) -> Iterator[RemoteEmbedder]:
    with closing(connect("openai", server.url, clock=clock)) as made:
        server.requests.clear()
        yield made


def failure(remote: RemoteEmbedder, text: str = "a boat") -> MemorydError:
    with pytest.raises(MemorydError) as caught:
        remote.embed_documents([text])
    return caught.value


# -- batches ----------------------------------------------------------------------------------------------


def test_as_many_texts_are_sent_at_once_as_the_provider_takes(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    texts = [f"note {n}" for n in range(300)]
    vectors = remote.embed_documents(texts)
    assert [len(request["input"]) for request in server.requests] == [128, 128, 44]
    assert vectors[299] @ remote.embed_documents([texts[299]])[0] == pytest.approx(1.0, abs=1e-5)


def test_batch_that_is_too_large_is_split_and_the_smaller_size_is_kept() -> None:
    with run_embedding_server(COMPATIBLE, FakeEmbedder()) as server:
        server.api = type(COMPATIBLE)(**{**vars(COMPATIBLE), "most": 3})
        with closing(connect("openai-compatible", server.url)) as remote:
            server.requests.clear()
            vectors = remote.embed_documents(TEXTS)
            assert [len(request["input"]) for request in server.requests] == [10, 5, 2, 3, 5, 2, 3]
            server.requests.clear()
            assert np.abs(remote.embed_documents(TEXTS) - vectors).max() < 1e-6
            assert [len(request["input"]) for request in server.requests] == [2] * 5


@pytest.mark.parametrize(
    ("api", "provider", "body"),
    [
        (OPENAI, "openai", {"error": {"message": "maximum context length is 8192 tokens", "code": None}}),
        (MISTRAL, "mistral", {"object": "error", "message": "Too many tokens in batch. Max is 16384 got 17555"}),
        (GEMINI, "gemini", {"error": {"code": 400, "message": "at most 100 requests can be in one batch"}}),
    ],
)
def test_what_a_provider_says_instead_of_413_splits_too(api: Any, provider: str, body: Any) -> None:
    with run_embedding_server(api, FakeEmbedder()) as server, closing(connect(provider, server.url)) as remote:
        server.requests.clear()
        server.dictated.append(Dictated(400, body))
        assert remote.embed_documents(TEXTS).shape[0] == 10
        assert len(server.requests) == 3


def test_one_text_that_is_too_large_is_cut(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    server.dictated += [Dictated(413, None), Dictated(413, None)]
    remote.embed_documents(["x" * 1000])
    assert [len(request["input"][0]) for request in server.requests] == [1000, 500, 250]
    server.requests.clear()
    server.always = Dictated(413, None)
    assert isinstance(failure(remote, "y" * 1000), EmbedderRefused)
    assert len(server.requests) == 4, "halved until nothing is left to halve, and not for ever"


# -- failures ---------------------------------------------------------------------------------------------


def test_after_a_failure_it_is_asked_later_each_time(
    server: EmbeddingServer, remote: RemoteEmbedder, clock: SetClock
) -> None:
    server.always = Dictated(500, {"error": {"message": "Internal error"}})
    waits = []
    for _ in range(12):
        error = failure(remote)
        assert isinstance(error, ProviderUnavailable)
        assert "500: Internal error" in error.message
        asked = len(server.requests)
        assert failure(remote).message == error.message
        with pytest.raises(ProviderUnavailable):
            remote.embed_query("a boat")
        assert len(server.requests) == asked, "while it is held back nobody asks"
        hold = remote.hold()
        assert hold is not None
        waits.append(hold.until - clock())
        clock.move(waits[-1])
    assert waits[:4] == [2, 4, 8, 16]
    assert waits[-1] == max(waits) == breaker.LONGEST_S
    server.always = None
    remote.embed_documents(["a boat"])
    assert remote.hold() is None
    server.always = Dictated(500, None)
    failure(remote)
    hold = remote.hold()
    assert hold is not None
    assert hold.until - clock() == 2, "what was is forgotten"


@pytest.mark.parametrize(
    ("asked", "wait"), [("45", 45.0), ("in 90 s", 90.0), ("1", 2.0), ("999999", breaker.LONGEST_ASKED_S), ("soon", 2.0)]
)
def test_wait_that_the_server_asks_for_is_kept(
    server: EmbeddingServer, remote: RemoteEmbedder, clock: SetClock, asked: str, wait: float
) -> None:
    value = formatdate(clock() + 90, usegmt=True) if asked == "in 90 s" else asked
    server.dictated.append(Dictated(429, {"error": {"message": "Slow down"}}, {"Retry-After": value}))
    failure(remote)
    hold = remote.hold()
    assert hold is not None
    assert hold.until - clock() == pytest.approx(wait)


def test_clock_that_is_set_back_holds_nothing(server: EmbeddingServer, remote: RemoteEmbedder, clock: SetClock) -> None:
    server.dictated.append(Dictated(503, None))
    failure(remote)
    assert remote.hold()
    clock.move(-100_000)
    assert remote.hold() is None
    remote.embed_documents(["a boat"])


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_a_person_must_put_right_is_not_asked_again_by_itself(
    server: EmbeddingServer, remote: RemoteEmbedder, clock: SetClock, status: int
) -> None:
    server.always = Dictated(status, {"error": {"message": f"The key {KEY} is wrong"}})
    for _ in range(10):
        error = failure(remote)
        assert isinstance(error, EmbedderRefused)
        assert error.hint
        assert KEY not in error.message
        clock.move(60)
    assert len(server.requests) == 1
    server.always = None
    remote.try_again()
    remote.embed_documents(["a boat"])


def test_text_that_is_refused_does_not_hold_back_the_others(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    server.forbidden = "secret"
    assert isinstance(failure(remote, "a secret"), EmbedderRefused)
    remote.embed_documents(["a boat"])
    for _ in range(9):
        failure(remote, "a secret")
    assert len(server.requests) == 2 + breaker.REFUSALS, "a provider that refuses everything is left alone"


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"<html>Sign in to the hotel</html>", ProviderUnavailable, "no JSON"),
        (b"", ProviderUnavailable, "no JSON"),
        ({"result": "ok"}, EmbedderRefused, "does not answer as openai does"),
        ({"data": []}, EmbedderRefused, "0 vectors for 1 texts"),
        ({"data": [{"index": 0, "embedding": [1.0]}]}, EmbedderRefused, "vectors of 1 numbers where 128"),
        ({"data": [{"index": 0, "embedding": [0.0] * 128}]}, EmbedderRefused, "length 0"),
        ({"data": [{"index": 0, "embedding": [None] * 128}]}, EmbedderRefused, "not of numbers"),
    ],
)
def test_answer_that_is_none_is_never_taken_for_one(
    server: EmbeddingServer, remote: RemoteEmbedder, body: Any, kind: type[MemorydError], words: str
) -> None:
    server.dictated.append(Dictated(200, body))
    error = failure(remote)
    assert isinstance(error, kind)
    assert words in error.message


def test_redirect_is_not_followed(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    with run_embedding_server(OPENAI, FakeEmbedder()) as elsewhere:
        server.dictated.append(Dictated(307, None, {"Location": f"{elsewhere.url}/embeddings"}))
        assert "307" in failure(remote).message
        assert elsewhere.requests == [], "it would take the key along"


def test_nobody_there_is_told_with_a_remedy() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(ProviderUnavailable, match="cannot be asked") as caught:
            connect("openai", f"http://127.0.0.1:{nobody.getsockname()[1]}/v1")
    assert caught.value.hint


def test_server_that_does_not_answer_is_given_up_in_time(server: EmbeddingServer) -> None:
    server.silent.set()
    with pytest.raises(ProviderUnavailable, match=r"within 0\.2 s"):
        connect("openai", server.url, timeout_s=0.2)


def test_query_does_not_wait_for_a_batch_that_takes_its_time(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    server.silent.set()
    batch = threading.Thread(target=lambda: remote.embed_documents(TEXTS))
    batch.start()
    eventually(lambda: len(server.requests) == 1, what="the batch is under way")
    assert remote.concurrent
    asked = threading.Thread(target=lambda: remote.embed_query("a boat"))
    asked.start()
    eventually(lambda: len(server.requests) == 2, what="the query is under way beside it")
    server.silent.clear()
    batch.join()
    asked.join()


def test_closing_lets_go_of_a_request_that_is_under_way(server: EmbeddingServer) -> None:
    remote = connect("openai", server.url)
    server.silent.set()
    outcome: list[Exception] = []

    def ask() -> None:
        try:
            remote.embed_documents(["a boat"])
        except EmbedderUnavailable as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: len(server.requests) == 2, what="it is under way")
    remote.close()
    thread.join()
    assert "closed" in str(outcome[0])


# -- queries ----------------------------------------------------------------------------------------------


def test_question_that_is_asked_again_is_not_sent_again(server: EmbeddingServer, remote: RemoteEmbedder) -> None:
    first = remote.embed_query("where is the boat?")
    assert (remote.embed_query("where is the boat?") == first).all()
    assert len(server.requests) == 1
    for n in range(300):
        remote.embed_query(f"question {n}")
    remote.embed_query("where is the boat?")
    assert len(server.requests) == 302, "but not for ever"


def test_prefixes_are_the_model_s_unless_others_are_set() -> None:
    with run_embedding_server(OLLAMA, FakeEmbedder()) as server:
        with closing(connect("ollama", server.url)) as remote:
            remote.embed_query("boat")
            remote.embed_documents(["boat"])
            before = remote.identity.fingerprint
        assert server.texts[-2:] == ["search_query: boat", "search_document: boat"]
        with closing(connect("ollama", server.url, query_prefix="Q ", document_prefix="D ")) as remote:
            remote.embed_query("boat")
            remote.embed_documents(["boat"])
            assert remote.identity.fingerprint != before
        assert server.texts[-2:] == ["Q boat", "D boat"]


# -- identity ---------------------------------------------------------------------------------------------


def test_fingerprint_is_of_all_that_makes_other_vectors_and_of_nothing_else(server: EmbeddingServer) -> None:
    def fingerprint(provider: str = "openai", url: str = "", **options: Any) -> str:
        with closing(connect(provider, url or server.url, **options)) as made:
            return made.identity.fingerprint

    plain = fingerprint()
    assert fingerprint(timeout_s=9.0) == plain
    with run_embedding_server(OPENAI, FakeEmbedder()) as elsewhere:
        assert fingerprint(url=elsewhere.url) == plain, "the same service by another way"
    others = [fingerprint(dimension=64), fingerprint(query_prefix="q"), fingerprint(text_version="2")]
    with (
        run_embedding_server(COMPATIBLE, FakeEmbedder()) as one,
        run_embedding_server(COMPATIBLE, FakeEmbedder()) as two,
    ):
        others += [fingerprint("openai-compatible", each.url) for each in (one, two)]
    assert len({plain, *others}) == 1 + len(others)


def test_dimension_is_cut_where_the_service_does_not_know_how(server: EmbeddingServer) -> None:
    with (
        run_embedding_server(MISTRAL, DenseEmbedder()) as other,
        closing(connect("mistral", other.url, dimension=32)) as remote,
    ):
        assert "output_dimension" not in other.requests[0]
        assert remote.identity.dimension == 32
        assert np.linalg.norm(remote.embed_documents(TEXTS), axis=1) == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(EmbedderRefused, match="vectors of 128 numbers where 500 were expected"):
        connect("openai", server.url, dimension=500)


# -- the key, the proxy, the budget -------------------------------------------------------------------------


def test_key_is_in_no_error_no_name_and_no_text_of_an_object(server: EmbeddingServer, clock: SetClock) -> None:
    with closing(connect("openai", server.url, clock=clock)) as remote:
        server.dictated.append(Dictated(400, {"error": {"message": f"what about {KEY}?"}}))
        error = failure(remote)
        assert "what about …?" in error.message
        cause: BaseException | None = error
        while cause is not None:
            assert KEY not in f"{cause!r}{cause.args}"
            cause = cause.__cause__ or cause.__context__
        shown = f"{remote!r}{vars(remote)!r}{remote._http!r}{vars(remote._http)!r}"
        assert KEY not in shown
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_request_goes_through_the_proxy_of_the_environment(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy is the server itself: it sees the whole address of a host that does not exist."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("NO_PROXY", "")
    with closing(connect("openai", "http://embeddings.invalid/v1")):
        pass
    assert server.paths == ["http://embeddings.invalid/v1/embeddings"]
    with closing(connect("openai", server.url)):
        assert server.paths[-1] == "/v1/embeddings", "but not to this machine itself"


def test_tokens_of_the_day_are_counted_as_the_service_does_and_kept(
    server: EmbeddingServer, clock: SetClock, tmp_path: Path
) -> None:
    def budget() -> Budget:
        return Budget(100, tmp_path / "tokens.json", clock)

    with closing(connect("openai", server.url, clock=clock, budget=budget())) as remote:
        remote.embed_documents(["one two three four"])
        assert budget().used() == 2 + 4
        assert "daily_tokens" in failure(remote, "word " * 90).message
        hold = remote.hold()
        assert hold is not None
        assert not hold.queries
        assert remote.embed_query("word " * 80) is not None, "the last tenth is for queries"
        with pytest.raises(ProviderUnavailable, match="daily_tokens"):
            remote.embed_query("word " * 90)
        assert remote.hold(), "the lane does not ask for it again and again"
        clock.now = hold.until
        assert remote.hold() is None
        assert budget().used() == 0
        remote.embed_documents(["word " * 80])
