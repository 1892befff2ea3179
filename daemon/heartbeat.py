"""The watchdog's food: given only while the lanes get on, every watcher comes round and the socket answers.

That this loop turns is proved by the beat itself. Where something is not alive, nothing is sent, the service manager's
patience ends, and it restarts memoryd: the work in hand is repeated, nothing is lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import structlog

from memoryd.daemon.notify import Notifier
from memoryd.daemon.watcher import Watcher
from memoryd.jobs.worker import Worker

log = structlog.get_logger()

SILENCE_S = 600.0  # a lane or a watcher may be this long at one step; compacting a large store takes minutes
_PING = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "ping"}).encode() + b"\n"


class Heartbeat:
    def __init__(
        self,
        notifier: Notifier,
        worker: Worker,
        watchers: Mapping[str, Watcher],
        address: str,
        silence_s: float = SILENCE_S,
    ) -> None:
        self._notifier = notifier
        self._worker = worker
        self._watchers = watchers
        self._address = address
        self._silence_s = silence_s

    async def beat(self) -> None:
        """For as long as memoryd runs, if the service manager keeps a watchdog."""
        told: str | None = None
        while (due_s := self._notifier.watchdog_s) is not None:
            ailment = await self.ailment(due_s / 4)
            if ailment is None:
                self._notifier.watchdog()
            elif ailment != told:
                log.error("watchdog_not_fed", reason=ailment)
                self._notifier.status(f"not well: {ailment}")
            told = ailment
            await asyncio.sleep(due_s / 4)

    async def ailment(self, patience_s: float) -> str | None:
        """What is not alive; None = everything is."""
        if not self._worker.alive():
            return "a lane of the worker has ended"
        if self._worker.silence_s() > self._silence_s:
            return f"a lane of the worker has been at one step for {self._worker.silence_s():.0f} s"
        for name, watcher in list(self._watchers.items()):
            if not watcher.alive() or watcher.silence_s() > self._silence_s:
                return f"the watcher of {name} does not come round"
        try:
            async with asyncio.timeout(patience_s):
                if not await _answers(self._address):
                    return "the socket closes connections without an answer"
        except TimeoutError:
            return f"the socket did not answer in {patience_s:g} s"
        except OSError as error:
            return f"the socket cannot be connected to: {error.strerror or error}"
        return None


async def _answers(address: str) -> bool:
    """Whether a client gets an answer; one that says that the server is full is one too."""
    reader, writer = await asyncio.open_unix_connection(address)
    try:
        writer.write(_PING)
        return bool(await reader.readline())
    finally:
        writer.close()
