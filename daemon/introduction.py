"""What the server says of itself to a client that introduces itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import structlog

from memoryd.daemon.limits import Limits
from memoryd.daemon.own_version import own_version
from memoryd.daemon.protocol import KINDS
from memoryd.daemon.requests import InitializeRequest
from memoryd.daemon.session import CANCEL
from memoryd.store.errors import InvalidParams

log = structlog.get_logger()

PROTOCOL_VERSION = 1  # another one: what a client of this one relies on is gone or means something else


def introduce(request: InitializeRequest, methods: Iterable[str], limits: Limits, event_queue: int) -> dict[str, Any]:
    if request.protocol_version not in (None, PROTOCOL_VERSION):
        raise InvalidParams(
            f"Protocol version {request.protocol_version} is not spoken here; version {PROTOCOL_VERSION} is.",
            hint="Update the client or memoryd, whichever is older.",
        )
    log.debug("client_introduced", client=request.client and request.client[:100])
    return {
        "name": "memoryd",
        "version": own_version(),
        "protocol_version": PROTOCOL_VERSION,
        "pid": os.getpid(),
        "capabilities": {
            "framings": ["lines", "headers"],
            "batches": True,
            "cancel": CANCEL,
            "events": list(KINDS),
            "fence": True,
        },
        "methods": sorted(methods),
        "limits": {
            "max_request_bytes": limits.max_request_bytes,
            "max_batch": limits.max_batch,
            "max_connections": limits.max_connections,
            "max_in_flight": limits.max_in_flight,
            "max_answer_bytes": limits.max_answer_bytes,
            "request_timeout_s": limits.request_timeout_s,
            "arrival_timeout_s": limits.arrival_timeout_s,
            "idle_timeout_s": limits.idle_timeout_s,
            "event_queue": event_queue,
        },
    }
