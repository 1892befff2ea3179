"""What both clients say and how they read the answers: pure, and quick to import."""

from __future__ import annotations

import json
from collections.abc import Mapping

from memoryd.store.errors import Busy, ConfigInvalid, MemorydError, NotRunning, TimedOut, all_errors

TYPE_CHECKING = False  # importing typing would take longer than a search
if TYPE_CHECKING:
    from typing import Any, NoReturn

READ_BYTES = 64 * 1024
TIMEOUT_S = 30.0

# Asked twice is asked once: after a connection was lost on the way, these are sent again.
IDEMPOTENT = frozenset(
    {
        "initialize",
        "ping",
        "search",
        "why_not",
        "get",
        "status",
        "index",
        "settings.get",
        "rpc.discover",
        "ingest",
        "ingest.status",
        "facts.list",
        "facts.show",
    }
)


def encode_request(id_: int, method: str, params: Mapping[str, Any] | None) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}})


def encode_notification(method: str, params: Mapping[str, Any]) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def parse_answer(line: bytes) -> dict[str, Any]:
    """One message of the daemon's: an answer or a notification."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise MemorydError("What listens on the socket does not speak JSON-RPC.", hint="Is the socket path right?")
    return answer


def result_of(answer: Mapping[str, Any]) -> Any:
    """The result, or the server's error as the class that it was there."""
    if "error" in answer:
        raise_error(answer["error"])
    return answer.get("result")


def raise_error(error: Any) -> NoReturn:
    error = error if isinstance(error, dict) else {}
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    message = str(error.get("message", ""))
    hint = None if data.get("hint") is None else str(data["hint"])
    for kind in all_errors():
        if kind.code == data.get("code"):
            raise ConfigInvalid((message,), hint=hint) if kind is ConfigInvalid else kind(message, hint=hint)
    raise MemorydError(message, hint=hint)


def not_connected(path: str, error: OSError) -> MemorydError:
    """Why there is no connection."""
    if isinstance(error, BlockingIOError):
        return Busy("The daemon has too many clients waiting.", hint="Try again later.")
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return NotRunning(f"No memoryd daemon is listening on {path}.", hint="Start it with 'memoryd run'.")
    return NotRunning(
        f"The socket {path} cannot be used: {error.strerror or error}.",
        hint="Is it yours, and is the socket path in the configuration right?",
    )


def closed_early() -> NotRunning:
    return NotRunning(
        "The daemon closed the connection before it answered.",
        hint="It may be stopping, or run as another user: see 'memoryd status'.",
    )


def answered_another() -> MemorydError:
    return MemorydError("The daemon answered another request than ours.", hint="Please report this as a bug.")


def too_slow(method: str, timeout: float | None) -> TimedOut:
    return TimedOut(
        f"The daemon did not answer {method} within {timeout:g} s.", hint="It may be busy: see 'memoryd status'."
    )


def find_socket() -> str:
    """Where the daemon of this user listens, by the configuration and the environment, as the command line finds it."""
    import os

    from memoryd.daemon.usual_places import find_usual_socket

    if (usual := find_usual_socket(os.environ)) is not None:
        return usual
    from pathlib import Path

    from memoryd.daemon.config_file import load_config
    from memoryd.daemon.paths import find_paths

    return os.fspath(find_paths(load_config(None, os.environ, Path.cwd()), os.environ).socket)


def _encode(message: Mapping[str, Any]) -> bytes:
    # A file name that is not UTF-8 arrives from the shell as a lone surrogate: let the server refuse it.
    return json.dumps(message, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace") + b"\n"
