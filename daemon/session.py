"""What the server keeps of one client between its requests: the calls that run, and what it subscribed to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from memoryd.daemon.events import Events, Subscription
from memoryd.daemon.protocol import Id, Request, encode_notification
from memoryd.store.cancellation import Cancellation

CANCEL = "$/cancelRequest"


class Call:
    """One request on its way to its answer."""

    __slots__ = ("cancellation", "revoked", "session", "task")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.cancellation = Cancellation()  # for the work, on whichever thread
        self.revoked = False  # the client said so; else it left, or time ran out
        self.task: asyncio.Task[object] | None = None  # which works on the answer, once it has begun

    def revoke(self) -> None:
        """The client does not want the answer any more."""
        self.revoked = True
        self.cancellation.cancel()
        if self.task is not None:
            self.task.cancel()


class Session:
    """Lives as long as the connection. To be used on the loop's thread."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._calls: dict[Id, Call] = {}
        self._subscription: tuple[Events, Subscription, asyncio.Task[None]] | None = None

    def open_call(self, request: Request) -> Call:
        """Before anything is done for the request, so that a cancellation right behind it finds it."""
        call = Call(self)
        if not request.is_notification:
            self._calls[request.id] = call  # where an id is used twice at a time, the later one has it
        return call

    def close_call(self, request: Request, call: Call) -> None:
        if self._calls.get(request.id) is call:
            del self._calls[request.id]

    def cancel(self, id_: Id) -> bool:
        """Whether there was such a call; one that is answered already is none."""
        call = self._calls.get(id_)
        if call is not None:
            call.revoke()
        return call is not None

    def forsake(self) -> None:
        """The client is gone: work that can stop stops. What changes something is done all the same."""
        for call in self._calls.values():
            call.cancellation.cancel()

    @property
    def subscription(self) -> Subscription | None:
        return self._subscription[1] if self._subscription else None

    def follow(self, events: Events, subscription: Subscription) -> None:
        """Tells the client what happens, in place of what it followed before."""
        self.unfollow()
        self._subscription = events, subscription, asyncio.create_task(self._tell(subscription))

    def unfollow(self) -> None:
        if self._subscription is not None:
            events, subscription, telling = self._subscription
            self._subscription = None
            events.unsubscribe(subscription)
            telling.cancel()

    async def _tell(self, subscription: Subscription) -> None:
        while True:
            method, params = await subscription.next()
            await self._send(encode_notification(method, params))
