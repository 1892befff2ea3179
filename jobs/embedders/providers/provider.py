"""What a provider is: where it is asked, how, and what its answers and refusals mean. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Purpose = Literal["query", "document"]
Kind = Literal["too_large", "passing", "refused", "lasting"]
Json = dict[str, Any]

_LONGEST_DETAIL: Final = 300  # characters of a server's own words
_PASSING: Final = (408, 409, 425, 429)  # and 500 and above
_LASTING: Final = (401, 402, 403, 404, 405, 407)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one request. A refusal splits the batch, so the counts may be a little off."""

    texts: int
    tokens: int  # of all texts together, estimated
    context: int  # tokens of one text: it is cut to as many bytes, for no tokenizer makes more tokens than bytes
    bytes: int = 900_000  # of all texts together: many servers and proxies take a megabyte


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted of the service."""

    model: str
    texts: Sequence[str]
    purpose: Purpose
    dimension: int = 0  # 0: the model's own


@dataclass(frozen=True, slots=True)
class Answer:
    rows: list[list[float]]  # in the order of the texts
    tokens: int | None = None  # what it cost; None: the service does not say


@dataclass(frozen=True, slots=True)
class Prompts:
    """What a model was trained to see before a text."""

    query: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A refusal, understood.

    ``too_large``: fewer or shorter texts may pass. ``passing``: the same may pass later. ``refused``: these texts
    never will. ``lasting``: nothing will until a person changes the key, the model, the address or the account.
    """

    kind: Kind
    words: str = ""  # the server's own, shortened
    wait: float | None = None  # seconds, where the body says so
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    name: str  # the value of `embedder.provider`
    base_url: str  # empty: it must be configured
    model: str  # the default; empty: it must be configured
    limits: Limits
    url: Callable[[str, str], str]  # base URL, model
    headers: Callable[[str], Mapping[str, str]]  # key
    body: Callable[[Ask], Json]
    read: Callable[[Any], Answer]  # of the parsed JSON; raises LookupError, TypeError or ValueError
    explain: Callable[[int, Any], Fault]  # of status and body
    prompts: Callable[[str], Prompts] = lambda _model: Prompts()
    manner: Callable[[str], str] = lambda _model: ""  # what else of a request makes another vector, by model
    variables: tuple[str, ...] = ()  # by convention, of the key
    needs_key: bool = True
    has_own_address: bool = False  # the address is part of what the vectors are: there is no telling who answers


def bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def embeddings_url(base_url: str, _model: str) -> str:
    return f"{base_url.rstrip('/')}/embeddings"


def read_data(answer: Any) -> Answer:
    """The OpenAI shape, which others have too: rows say their place, and come in any order."""
    rows = sorted(answer["data"], key=lambda row: row["index"])
    usage = answer.get("usage") or {}
    tokens = usage.get("total_tokens")
    return Answer([row["embedding"] for row in rows], tokens if isinstance(tokens, int) else None)


def words_of(body: Any) -> str:
    """A server's own words, in whichever of the usual places they stand; never more than a line or two."""
    found = body
    while isinstance(found, dict):
        found = next((found[name] for name in ("error", "message", "detail", "msg") if found.get(name)), "")
    if isinstance(found, list):
        found = words_of(found[0]) if found else ""
    return " ".join(str(found).split())[:_LONGEST_DETAIL]


def by_status(status: int, body: Any, *, too_large: Sequence[str] = (), hint: str = "") -> Fault:
    """What HTTP itself says; ``too_large`` are words by which a service says what 413 would."""
    words = words_of(body)
    everything = json.dumps(body).lower() if body is not None else ""
    if status == 413 or (status >= 400 and any(each in everything for each in too_large)):
        return Fault("too_large", words)
    if status in _PASSING or status >= 500:
        return Fault("passing", words)
    if status in _LASTING or status < 400:  # a redirect would take the key along
        return Fault("lasting", words, hint=hint)
    return Fault("refused", words)
