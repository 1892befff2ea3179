"""Asking again what met a store in the moment in which it turned out damaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Protocol, TypeVar

from memoryd.daemon.engine import Engine
from memoryd.store.errors import StoreCorrupt, StoreUnavailable

_HEALING_S = 10.0


class _OverEngine(Protocol):
    _engine: Engine


Methods = TypeVar("Methods", bound=_OverEngine)
Answerer = Callable[[Methods, Mapping[str, Any]], dict[str, Any]]


def again_if_healed(answer: Answerer[Methods]) -> Answerer[Methods]:
    """Who asks in the moment in which the ledger turns out damaged waits until it is begun anew."""

    @wraps(answer)
    def answer_or_wait(methods: Methods, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return answer(methods, params)
        except (StoreCorrupt, StoreUnavailable):
            if not methods._engine.healer.wait_for_healing(_HEALING_S):
                raise
        return answer(methods, params)

    return answer_or_wait
