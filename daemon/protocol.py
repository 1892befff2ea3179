"""JSON-RPC 2.0 as pure functions: bytes to requests, results and errors to bytes.

Nothing that a client sends makes ``parse_message`` raise: what cannot be understood becomes a ``Refusal``,
which is answered like any other request. Every error on the wire carries
``data = {"code", "hint", "retryable"}``; the numbers of our own codes are in one table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from memoryd.store.errors import InvalidParams, MemorydError

Id = str | int | float | None

KINDS = ("document", "progress", "health")  # of events, told as notifications called events.<kind>

ERROR_NUMBERS: Mapping[str, int] = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "method_not_found": -32601,
    "invalid_params": -32602,
    "internal": -32603,
    "config_invalid": -32001,
    "not_running": -32002,
    "already_running": -32003,
    "service_unavailable": -32004,
    "service_failed": -32005,
    "workspace_unavailable": -32010,
    "file_unreadable": -32011,
    "not_found": -32012,
    "path_refused": -32013,
    "request_too_large": -32020,
    "busy": -32021,
    "timed_out": -32022,
    "framing_invalid": -32023,
    "answer_too_large": -32024,
    "cancelled": -32800,  # as the Language Server Protocol numbers it
    "model_missing": -32030,
    "model_corrupt": -32031,
    "download_failed": -32032,
    "checksum_mismatch": -32033,
    "embedder_unavailable": -32034,
    "download_refused": -32035,
    "language_model_missing": -32036,
    "language_model_unavailable": -32037,
    "language_model_refused": -32038,
    "embedder_refused": -32039,
    "reranker_unavailable": -32045,
    "prompt_too_long": -32046,
    "budget_spent": -32047,
    "store_full": -32040,
    "store_unavailable": -32041,
    "store_corrupt": -32042,
    "schema_too_new": -32043,
    "provider_unavailable": -32044,
    "vectors_away": -32048,
}


@dataclass(frozen=True, slots=True)
class WireError:
    """An error as the client sees it."""

    code: str  # ours; its JSON-RPC number is in ERROR_NUMBERS
    message: str
    hint: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One well-formed call. The method may still be unknown and the params wrong."""

    id: Id
    method: str
    params: Mapping[str, Any] | Sequence[Any]
    is_notification: bool  # nothing is answered, whatever happens


@dataclass(frozen=True, slots=True)
class Refusal:
    """What could not be understood, and the answer that it gets."""

    id: Id
    error: WireError
    method: str = "<invalid>"  # for the log: the client's own word only where it names a method


INTERNAL = WireError("internal", "Something went wrong inside memoryd.", "The daemon's log says what.")


def error_of(exc: MemorydError) -> WireError:
    """A typed error as the client sees it."""
    return WireError(exc.code, exc.message, exc.hint, exc.retryable)


def parse_message(line: bytes, max_batch: int) -> Request | Refusal | list[Request | Refusal]:
    """One message: a request, a refusal, or a batch of both that is never empty."""
    try:
        value = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as exc:
        return Refusal(None, WireError("parse_error", f"The message is not JSON: {_explain(exc)}."))
    if not isinstance(value, list):
        return _parse_request(value)
    if not value:
        return _invalid(None, "A batch must hold at least one request.")
    if len(value) > max_batch:
        return _invalid(None, f"A batch may hold at most {max_batch} requests.")
    return [_parse_request(item) for item in value]


def named_params(params: object) -> Mapping[str, Any]:
    """The params by name. By position, only none at all can be understood."""
    if isinstance(params, Mapping):
        return params
    if params is None or params == [] or params == ():
        return {}
    raise InvalidParams(
        "Parameters are taken by name, not by position.",
        hint='Send an object, such as "params": {"query": "..."}.',
    )


def encode_result(id_: Id, result: object) -> bytes:
    """The answer of a call that went well. Raises ``TypeError`` or ``ValueError`` if JSON cannot hold it."""
    return _encode({"jsonrpc": "2.0", "id": id_, "result": result})


def encode_error(id_: Id, error: WireError) -> bytes:
    """The answer of a call that failed."""
    data = {"code": error.code, "hint": error.hint, "retryable": error.retryable}
    number = ERROR_NUMBERS.get(error.code, ERROR_NUMBERS["internal"])
    return _encode({"jsonrpc": "2.0", "id": id_, "error": {"code": number, "message": error.message, "data": data}})


def encode_notification(method: str, params: Mapping[str, Any]) -> bytes:
    """What the server says unasked."""
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode_batch(answers: Sequence[bytes]) -> bytes:
    """The answers of a batch as one message."""
    return b"[" + b",".join(answers) + b"]"


def _parse_request(value: object) -> Request | Refusal:
    if not isinstance(value, dict):
        return _invalid(None, "A request must be an object.")
    id_ = value.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int | float | None):
        return _invalid(None, "The id must be a string, a number or null.")
    if value.get("jsonrpc") != "2.0":
        return _invalid(id_, 'The request must say "jsonrpc": "2.0".')
    method = value.get("method")
    if not isinstance(method, str):
        return _invalid(id_, "The method must be a string.")
    params = value.get("params", {})
    if not isinstance(params, dict | list):
        return _invalid(id_, "The params must be an object.")
    return Request(id_, method, params, is_notification="id" not in value)


def _invalid(id_: Id, message: str) -> Refusal:
    return Refusal(id_, WireError("invalid_request", message))


def _explain(exc: Exception) -> str:
    match exc:
        case UnicodeDecodeError():
            return f"byte {exc.start} is not UTF-8"
        case json.JSONDecodeError():
            return f"{exc.msg} at character {exc.pos}"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return "a number is out of range"


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("the number is too large for a float")
    return value


def _encode(value: object) -> bytes:
    # A lone surrogate stands only inside a JSON string, where its backslash escape means the same.
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
