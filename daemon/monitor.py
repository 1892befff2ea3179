"""How far indexing is and how healthy the daemon is, looked at while somebody subscribed, and told when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from memoryd.daemon.events import Events

log = structlog.get_logger()

LOOK_S = 0.5  # between two looks at whether anything happened at all
HEALTH_S = 5.0  # between two looks at the health while nothing does: it looks at the disk

Facts = dict[str, Any]


class Monitor:
    """Looks on threads, never on the loop; ends when the last subscriber is gone, and begins again with the next."""

    def __init__(
        self,
        events: Events,
        *,
        pulse: Callable[[], object],  # cheap; another value means that something happened
        progress: Callable[[], Facts],
        health: Callable[[], Facts],
    ) -> None:
        self._events = events
        self._pulse = pulse
        self._looks = {"progress": progress, "health": health}
        self._told: dict[str, Facts] = {}
        self._failing: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def tell_all(self) -> None:
        """How things stand now, for a client that is new. To be called on the loop."""
        self._told.clear()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        seen: object = None
        health_at = 0.0
        loop = asyncio.get_running_loop()
        while self._events.wanted(*self._looks):
            pulse = self._pulse()
            if pulse != seen or not self._told.get("progress"):  # a client that is new while we look is told too
                await self._look("progress")
            if pulse != seen or not self._told.get("health") or loop.time() >= health_at:
                await self._look("health")
                health_at = loop.time() + HEALTH_S
            seen = pulse
            await asyncio.sleep(LOOK_S)

    async def _look(self, kind: str) -> None:
        if not self._events.wanted(kind):
            return
        try:
            facts = await asyncio.to_thread(self._looks[kind])
        except Exception as error:  # noqa: BLE001  a store that fails now is told by the next look that succeeds
            if kind not in self._failing:
                log.warning("monitor_failed", kind=kind, reason=str(error))
            self._failing.add(kind)
            return
        self._failing.discard(kind)
        if facts != self._told.get(kind):
            self._told[kind] = facts
            self._events.tell(kind, **facts)
