"""How things stand is told to every client that subscribes, whatever the monitor is at."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from memoryd.daemon.events import Events
from memoryd.daemon.monitor import Monitor


def test_client_that_subscribes_during_a_look_is_told_all_of_it() -> None:
    looking, go_on = threading.Event(), threading.Event()
    looks: list[str] = []

    def progress() -> dict[str, Any]:
        looks.append("progress")
        return {"pending": 0}

    def health() -> dict[str, Any]:
        looks.append("health")
        looking.set()
        assert go_on.wait(20)
        return {"state": "ok"}

    async def subscribe_twice() -> list[str]:
        events = Events(lambda: 0.0)
        monitor = Monitor(events, pulse=lambda: 1, progress=progress, health=health)
        first = events.subscribe(("progress", "health"))
        monitor.tell_all()
        await asyncio.to_thread(looking.wait, 20)
        assert (await first.next())[0] == "events.progress"
        second = events.subscribe(("progress", "health"))
        monitor.tell_all()  # while the health is looked at
        go_on.set()
        async with asyncio.timeout(20):
            told = {(await second.next())[0], (await second.next())[0]}
        events.unsubscribe(first)
        events.unsubscribe(second)
        return sorted(told)

    assert asyncio.run(subscribe_twice()) == ["events.health", "events.progress"]
