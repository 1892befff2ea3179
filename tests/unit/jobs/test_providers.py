"""What each provider is sent, and what its answers and refusals mean: shapes as their documentation has them."""

from __future__ import annotations

from typing import Any

import pytest

from memoryd.jobs.embedders.providers import PROVIDERS
from memoryd.jobs.embedders.providers.provider import Ask, Prompts, words_of

KEYED = ("openai", "gemini", "voyage", "mistral")


def ask(provider: str, model: str = "", **options: Any) -> dict[str, Any]:
    chosen = PROVIDERS[provider]
    options = {"texts": ["one", "two"], "purpose": "document", **options}
    return chosen.body(Ask(model or chosen.model or "some", **options))


def url(provider: str, base_url: str = "", model: str = "") -> str:
    chosen = PROVIDERS[provider]
    return chosen.url(base_url or chosen.base_url, model or chosen.model)


# -- requests ---------------------------------------------------------------------------------------------


def test_addresses_are_those_of_the_services() -> None:
    assert url("openai") == "https://api.openai.com/v1/embeddings"
    assert url("voyage") == "https://api.voyageai.com/v1/embeddings"
    assert url("mistral") == "https://api.mistral.ai/v1/embeddings"
    assert url("ollama") == "http://127.0.0.1:11434/api/embed"
    assert url("gemini") == (
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents"
    )
    assert url("openai-compatible", "http://gpu:8080/v1/", "some") == "http://gpu:8080/v1/embeddings"


def test_key_goes_into_a_header_and_never_into_the_address() -> None:
    for name in PROVIDERS:
        headers = PROVIDERS[name].headers("secret")
        assert list(headers.values()) in (["Bearer secret"], ["secret"])
        assert "secret" not in url(name, "http://x", "m")
    assert PROVIDERS["ollama"].headers("") == {}


def test_task_is_told_in_the_way_of_each() -> None:
    assert ask("voyage", purpose="query")["input_type"] == "query"
    assert ask("voyage")["input_type"] == "document"
    assert [each["taskType"] for each in ask("gemini")["requests"]] == ["RETRIEVAL_DOCUMENT"] * 2
    assert ask("gemini", purpose="query")["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    assert ask("openai") == ask("openai", purpose="query")
    assert PROVIDERS["ollama"].prompts("nomic-embed-text:latest") == Prompts("search_query: ", "search_document: ")
    assert PROVIDERS["ollama"].prompts("all-minilm") == Prompts()
    assert PROVIDERS["openai-compatible"].prompts("Qwen/Qwen3-Embedding-0.6B").query.startswith("Instruct: ")


def test_second_generation_of_gemini_reads_the_task_from_the_text() -> None:
    assert "taskType" not in ask("gemini", "gemini-embedding-2")["requests"][0]
    assert PROVIDERS["gemini"].prompts("gemini-embedding-2").query == "task: search result | query: "
    assert PROVIDERS["gemini"].manner("gemini-embedding-2") != PROVIDERS["gemini"].manner("gemini-embedding-001")


def test_dimension_is_asked_for_where_the_model_has_a_choice() -> None:
    assert ask("openai", dimension=256)["dimensions"] == 256
    assert ask("voyage", dimension=256)["output_dimension"] == 256
    assert ask("gemini", dimension=256)["requests"][1]["outputDimensionality"] == 256
    assert ask("mistral", "codestral-embed", dimension=256)["output_dimension"] == 256
    assert ask("ollama", dimension=256)["dimensions"] == 256
    for body in (ask("mistral", dimension=256), ask("openai", "text-embedding-ada-002", dimension=256), ask("openai")):
        assert not {"dimensions", "output_dimension"} & body.keys()


# -- answers ----------------------------------------------------------------------------------------------


def test_rows_are_put_into_the_order_of_the_texts() -> None:
    data = [{"index": 1, "embedding": [3.0, 4.0]}, {"index": 0, "embedding": [1.0, 2.0]}]
    for name in ("openai", "voyage", "mistral", "openai-compatible"):
        answer = PROVIDERS[name].read({"data": data, "usage": {"total_tokens": 9}})
        assert (answer.rows, answer.tokens) == ([[1.0, 2.0], [3.0, 4.0]], 9)
    assert PROVIDERS["openai-compatible"].read({"data": data}).tokens is None


def test_gemini_and_ollama_answer_in_order() -> None:
    answer = PROVIDERS["gemini"].read({"embeddings": [{"values": [1.0]}, {"values": [2.0]}]})
    assert (answer.rows, answer.tokens) == ([[1.0], [2.0]], None)
    answer = PROVIDERS["ollama"].read({"model": "x", "embeddings": [[1.0], [2.0]], "prompt_eval_count": 5})
    assert (answer.rows, answer.tokens) == ([[1.0], [2.0]], 5)


@pytest.mark.parametrize("body", [{}, [], "text", None, {"data": [{}]}, {"embeddings": [{}]}, {"data": 1}])
@pytest.mark.parametrize("name", PROVIDERS)
def test_answer_of_another_shape_is_noticed(name: str, body: Any) -> None:
    if name == "ollama" and body == {"embeddings": [{}]}:
        return  # noticed by whoever makes vectors of the rows
    with pytest.raises((LookupError, TypeError, ValueError, AttributeError)):
        PROVIDERS[name].read(body)


# -- refusals, as they were recorded and are documented -----------------------------------------------------


def openai(message: str, kind: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def google(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def mistral(message: str, kind: str, code: str | None) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


INVALID_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
OVER_CONTEXT = "This model's maximum context length is 8192 tokens, however you requested 51435 tokens"
VOYAGE_BATCH = (
    "Request to model 'voyage-3-large' failed. The max allowed tokens per submitted batch is 120000. Your batch has"
    " 124302 tokens after truncation. Please lower the number of tokens in the batch."
)
RECORDED = [
    ("openai", 401, openai("Incorrect API key provided", "invalid_request_error", "invalid_api_key"), "lasting"),
    ("openai", 429, openai("Rate limit reached for requests", "requests", "rate_limit_exceeded"), "passing"),
    ("openai", 429, openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "lasting"),
    (
        "openai",
        400,
        openai(
            "Requested 309209 tokens, max 300000 tokens per request",
            "max_tokens_per_request",
            "max_tokens_per_request",
        ),
        "too_large",
    ),
    ("openai", 400, openai(OVER_CONTEXT, "invalid_request_error", None), "too_large"),
    ("openai", 400, openai("'$.input' is invalid.", "invalid_request_error", None), "refused"),
    ("openai", 404, openai("The model `x` does not exist", "invalid_request_error", "model_not_found"), "lasting"),
    ("openai", 500, openai("The server had an error", "server_error", None), "passing"),
    ("openai", 503, openai("The engine is currently overloaded", "server_error", None), "passing"),
    ("gemini", 400, google(400, "INVALID_ARGUMENT", "API key not valid.", INVALID_KEY), "lasting"),
    (
        "gemini",
        400,
        google(
            400,
            "INVALID_ARGUMENT",
            "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n",
        ),
        "too_large",
    ),
    ("gemini", 403, google(403, "PERMISSION_DENIED", "The caller does not have permission"), "lasting"),
    ("gemini", 404, google(404, "NOT_FOUND", "models/x is not found for API version v1beta"), "lasting"),
    ("gemini", 429, google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", RETRY), "passing"),
    ("gemini", 503, google(503, "UNAVAILABLE", "The model is overloaded."), "passing"),
    ("voyage", 400, {"detail": VOYAGE_BATCH}, "too_large"),
    ("voyage", 400, {"detail": "Argument 'input_type' is invalid."}, "refused"),
    ("voyage", 401, {"detail": "Provided API key is invalid."}, "lasting"),
    ("voyage", 429, {"detail": "You have not yet added your payment method … reduced rate limits of 3 RPM"}, "passing"),
    (
        "mistral",
        400,
        mistral("Too many tokens in batch. Max is 16384 got 17555", "invalid_request_error", None),
        "too_large",
    ),
    (
        "mistral",
        400,
        mistral("Too many inputs in request, split into more batches.", "invalid_request_error", "3210"),
        "too_large",
    ),
    ("mistral", 401, {"detail": "Unauthorized"}, "lasting"),
    ("mistral", 422, {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required"}]}, "refused"),
    ("mistral", 429, mistral("Rate limit exceeded", "rate_limited", "1300"), "passing"),
    ("ollama", 404, {"error": 'model "nomic-embed-text" not found, try pulling it first'}, "lasting"),
    ("ollama", 400, {"error": "input length exceeds maximum context length"}, "too_large"),
    ("ollama", 400, {"error": "invalid input type"}, "refused"),
    ("ollama", 500, {"error": "llama runner process has terminated"}, "passing"),
    (
        "openai-compatible",
        500,
        {"error": {"code": 500, "message": "input is too large to process. increase the physical batch size"}},
        "too_large",
    ),
    (
        "openai-compatible",
        400,
        {"error": {"code": 400, "message": "the request exceeds …", "type": "exceed_context_size_error"}},
        "too_large",
    ),
    (
        "openai-compatible",
        501,
        {"error": {"code": 501, "message": "This server does not support embeddings. Start it with `--embeddings`"}},
        "lasting",
    ),
    (
        "openai-compatible",
        413,
        {"error": "batch size 33 > maximum allowed batch size 32", "error_type": "Validation"},
        "too_large",
    ),
    (
        "openai-compatible",
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        "passing",
    ),
    ("openai-compatible", 502, None, "passing"),
    ("openai-compatible", 302, None, "lasting"),
]


@pytest.mark.parametrize(("name", "status", "body", "kind"), RECORDED)
def test_recorded_refusal_is_understood(name: str, status: int, body: Any, kind: str) -> None:
    fault = PROVIDERS[name].explain(status, body)
    assert fault.kind == kind
    assert fault.words == words_of(body)


@pytest.mark.parametrize("status", [413, 429, 500, 503, 401, 403, 404])
@pytest.mark.parametrize("name", PROVIDERS)
def test_status_alone_is_enough(name: str, status: int) -> None:
    kinds = {413: "too_large", 429: "passing", 500: "passing", 503: "passing"}
    for body in (None, [], "Bad gateway", {"error": None}, {"error": []}, 7):
        assert PROVIDERS[name].explain(status, body).kind == kinds.get(status, "lasting")


def test_wait_that_google_tells_in_the_body_is_read() -> None:
    assert PROVIDERS["gemini"].explain(429, google(429, "RESOURCE_EXHAUSTED", "Quota", RETRY)).wait == 37.0
    odd = {"retryDelay": "soon"}
    assert PROVIDERS["gemini"].explain(429, google(429, "RESOURCE_EXHAUSTED", "Quota", odd)).wait is None


def test_missing_model_of_ollama_has_its_remedy() -> None:
    assert "ollama pull" in PROVIDERS["ollama"].explain(404, {"error": "model 'x' not found"}).hint


def test_words_of_a_server_are_one_short_line() -> None:
    assert words_of({"error": {"message": "one\n  two " + "x" * 1000}}).startswith("one two xxx")
    assert len(words_of({"detail": "x" * 1000})) == 300
    assert words_of({"detail": [{"msg": "Field required"}]}) == "Field required"
