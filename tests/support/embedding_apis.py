"""The providers' embedding APIs as their documentation has them, for the loopback server."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.embedding_server import Api, Json, RefusedRequest


def _openai_error(status: int, message: str) -> Json:
    code = "invalid_api_key" if status == 401 else None
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def _openai_answer(rows: list[list[float]], tokens: int) -> Json:
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    return {
        "object": "list",
        "data": data[::-1],  # a row says its place: the order is nobody's promise
        "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _reader(
    model: str, error: Callable[[int, str], Json], dimension: str, **known: tuple[object, ...]
) -> Callable[[Json], tuple[list[str], int]]:
    """Reads ``input``; ``known`` are the fields besides, and the values that they may have."""

    def read(body: Json) -> tuple[list[str], int]:
        if body.pop("model") != model:
            raise RefusedRequest(404, error(404, "The model does not exist or you do not have access to it."))
        texts, wanted = body.pop("input"), body.pop(dimension, 0)
        for name, value in body.items():
            if value not in known.get(name, ()):
                raise RefusedRequest(400, error(400, f"unknown: {name} = {value}"))
        return ([texts] if isinstance(texts, str) else texts), wanted

    return read


def _gemini_read(body: Json) -> tuple[list[str], int]:
    requests = body.pop("requests")
    if body or len(requests) > 100:
        message = "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n"
        raise RefusedRequest(400, _gemini_error(400, message))
    texts, wanted = [], 0
    for request in requests:
        if request.pop("model") != "models/gemini-embedding-001":
            raise RefusedRequest(404, _gemini_error(404, "models/x is not found for API version v1beta"))
        ((part,),) = request.pop("content").values()
        texts.append(part["text"])
        wanted = request.pop("outputDimensionality", 0)
        if request.pop("taskType") not in ("RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT") or request:
            raise RefusedRequest(400, _gemini_error(400, "Invalid JSON payload received. Unknown name"))
    return texts, wanted


def _gemini_error(status: int, message: str) -> Json:
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT"}
    return {"error": {"code": status, "message": message, "status": names[status]}}


def _voyage_error(_status: int, message: str) -> Json:
    return {"detail": message}


def _mistral_error(status: int, message: str) -> Json:
    if status == 401:
        return {"detail": "Unauthorized"}
    return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": None}


def _ollama_error(_status: int, message: str) -> Json:
    return {"error": message}


OPENAI = Api(
    "/v1/embeddings",
    _reader("text-embedding-3-small", _openai_error, "dimensions", encoding_format=("float", "base64")),
    _openai_answer,
    _openai_error,
)
GEMINI = Api(
    "/v1beta/models/gemini-embedding-001:batchEmbedContents",
    _gemini_read,
    lambda rows, _tokens: {"embeddings": [{"values": row} for row in rows]},
    _gemini_error,
    key_header=("x-goog-api-key", ""),
    most=100,
)
VOYAGE = Api(
    "/v1/embeddings",
    _reader(
        "voyage-3.5", _voyage_error, "output_dimension", input_type=("query", "document"), truncation=(True, False)
    ),
    lambda rows, tokens: {**_openai_answer(rows, tokens), "model": "voyage-3.5", "usage": {"total_tokens": tokens}},
    _voyage_error,
    most=1000,
)
MISTRAL = Api(
    "/v1/embeddings",
    _reader("mistral-embed", _mistral_error, "output_dimension"),
    lambda rows, tokens: {"id": "1", **_openai_answer(rows, tokens), "model": "mistral-embed"},
    _mistral_error,
    most=256,
)
OLLAMA = Api(
    "/api/embed",
    _reader("nomic-embed-text", _ollama_error, "dimensions", truncate=(True, False)),
    lambda rows, tokens: {
        "model": "nomic-embed-text",
        "embeddings": rows,
        "total_duration": 14143917,
        "load_duration": 1019500,
        "prompt_eval_count": tokens,
    },
    _ollama_error,
)
COMPATIBLE = Api(
    "/v1/embeddings", _reader("some-model", _openai_error, "dimensions"), _openai_answer, _openai_error, most=64
)

APIS = {
    "openai": OPENAI,
    "gemini": GEMINI,
    "voyage": VOYAGE,
    "mistral": MISTRAL,
    "ollama": OLLAMA,
    "openai-compatible": COMPATIBLE,
}
