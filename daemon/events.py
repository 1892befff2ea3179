"""What happens inside, told to the clients that subscribed: in order, bounded, never at the expense of the work.

Telling costs the thread that tells one append, whoever listens and however slowly; the loop hands out. A client that
does not keep up loses the oldest events of its own queue, and is told how many before the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memoryd.daemon.protocol import KINDS
from memoryd.store.protocols import Clock

QUEUE = 256  # events that wait for one client
INBOX = 4096  # events that wait for the loop

Notification = tuple[str, dict[str, Any]]  # method and params


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    seq: int  # counts every event of the daemon; a gap is what was not subscribed to, or dropped
    at: float  # unix time
    kind: str  # one of KINDS
    facts: Mapping[str, Any]

    def notification(self) -> Notification:
        at = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        return f"events.{self.kind}", {"seq": self.seq, "at": at, **self.facts}


class Subscription:
    """One client's queue. To be used on the loop's thread."""

    def __init__(self, kinds: Collection[str], workspaces: Collection[str], most: int) -> None:
        self.kinds = tuple(kind for kind in KINDS if kind in kinds)
        self._workspaces = workspaces  # whose documents; none: all
        self._queue: deque[Event] = deque()
        self._most = most
        self._dropped = 0
        self._ready = asyncio.Event()

    def put(self, event: Event) -> None:
        if event.kind not in self.kinds:
            return
        if event.kind == "document" and self._workspaces and event.facts["workspace"] not in self._workspaces:
            return
        self._queue.append(event)
        if len(self._queue) > self._most:
            self._queue.popleft()
            self._dropped += 1
        self._ready.set()

    def lose(self, count: int) -> None:
        self._dropped += count
        self._ready.set()

    async def next(self) -> Notification:
        """The next thing to tell; what was lost comes before what came after it."""
        while True:
            await self._ready.wait()
            if self._dropped:
                count, self._dropped = self._dropped, 0
                return "events.dropped", {"count": count}
            if self._queue:
                return self._queue.popleft().notification()
            self._ready.clear()


class Events:
    """Where it is told, by any thread, and handed out, by the loop."""

    def __init__(self, clock: Clock, *, queue: int = QUEUE, inbox: int = INBOX) -> None:
        self._clock = clock
        self._queue = queue
        self._most = inbox
        self._lock = threading.Lock()
        self._inbox: list[Event] = []
        self._lost = 0
        self._seq = 0
        self._subscriptions: frozenset[Subscription] = frozenset()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def queue(self) -> int:
        """Events that wait for one client at most."""
        return self._queue

    def wanted(self, *kinds: str) -> bool:
        """Whether anybody subscribed to one of these."""
        return any(kind in subscription.kinds for subscription in self._subscriptions for kind in kinds)

    def tell(self, kind: str, **facts: Any) -> None:
        """Something happened. Never blocks, never raises."""
        if not self.wanted(kind):
            return
        with self._lock:
            self._seq += 1
            if len(self._inbox) >= self._most:
                self._lost += 1
                return
            self._inbox.append(Event(self._seq, self._clock(), kind, facts))
            if len(self._inbox) > 1 or self._loop is None:
                return  # the loop has been called already
            with contextlib.suppress(RuntimeError):  # the loop ended: nobody listens
                self._loop.call_soon_threadsafe(self._hand_out)

    def subscribe(self, kinds: Collection[str], workspaces: Collection[str] = ()) -> Subscription:
        """To be called on the loop."""
        self._loop = asyncio.get_running_loop()
        subscription = Subscription(kinds, workspaces, self._queue)
        self._subscriptions |= {subscription}
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions -= {subscription}

    def _hand_out(self) -> None:
        with self._lock:
            events, self._inbox = self._inbox, []
            lost, self._lost = self._lost, 0
        for subscription in self._subscriptions:
            for event in events:
                subscription.put(event)
            if lost:
                subscription.lose(lost)
