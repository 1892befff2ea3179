"""HTTP as every service is asked over it: one client, a limit on the whole of a request, proxies, and no redirects."""

from __future__ import annotations

import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from memoryd.jobs.background import in_background
from memoryd.store.errors import MemorydError

if TYPE_CHECKING:
    import httpx

_CONNECT_S: Final = 10.0


class Unreachable(Exception):
    """There is no answer: no connection, or a broken one."""


class TooLate(Unreachable):
    """There is none in time."""


class TooLarge(Unreachable):
    """It is larger than any that is right."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]  # their names in small letters
    data: bytes

    def json(self) -> Any:
        """The body, parsed; None where it is no JSON."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return None


class Http:
    """Any number of threads may ask; ``close`` lets go of all of them."""

    def __init__(self, url: str, *, largest: int, closed: Callable[[], MemorydError]) -> None:
        """``largest``: bytes of an answer. ``closed``: what is raised once it is."""
        self.url = url
        self._largest = largest
        self._closed_error = closed
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._under_way: set[Future[Reply]] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"Http({self.url!r})"

    def post(self, body: Mapping[str, Any], headers: Mapping[str, str], timeout_s: float) -> Reply:
        """Raises ``Unreachable``, about when the time is over; what ``closed`` gives once it is closed."""
        data = json.dumps(body).encode("ascii")  # once, so that what is sent is what was measured
        deadline = time.monotonic() + timeout_s
        # In a thread of its own: the library limits each read but not the whole, and a server that sends a byte now
        # and then would hold the caller for ever.
        with self._lock:
            if self._closed:
                raise self._closed_error()
            asked = in_background(lambda: self._send(data, headers, deadline), "http-request")
            self._under_way.add(asked)
        try:
            return asked.result(timeout_s)
        except CancelledError:
            raise self._closed_error() from None
        except TimeoutError:  # of this wait, or of the request itself
            raise TooLate(f"no answer within {timeout_s:g} s") from None
        finally:
            asked.cancel()
            with self._lock:
                self._under_way.discard(asked)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for asked in self._under_way:
                asked.cancel()
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def check_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _send(self, body: bytes, headers: Mapping[str, str], deadline: float) -> Reply:
        import httpx

        remaining = max(0.001, deadline - time.monotonic())  # for each step
        timeout = httpx.Timeout(remaining, connect=min(_CONNECT_S, remaining))
        sent = {"Content-Type": "application/json", **headers}
        data = bytearray()
        try:
            with self._open().stream("POST", self.url, content=body, headers=sent, timeout=timeout) as response:
                for piece in response.iter_bytes():
                    data += piece
                    if time.monotonic() > deadline:
                        raise TimeoutError
                    if len(data) > self._largest:
                        raise TooLarge("the answer is larger than any that is right")
                return Reply(response.status_code, dict(response.headers), bytes(data))
        except httpx.TimeoutException:
            raise TimeoutError from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Not chained: the library's error holds the request, and that the key.
            raise Unreachable(str(error) or type(error).__name__) from None

    def _open(self) -> httpx.Client:
        """A client that follows no redirect, which would take the key along, and no proxy to this machine itself."""
        import httpx

        with self._lock:
            if self._closed:
                raise self._closed_error()
            if self._client is None:
                self._client = httpx.Client(
                    verify=ssl.create_default_context(),
                    trust_env=not is_loopback(self.url),
                    headers={"User-Agent": "memoryd"},
                )
            return self._client


def is_loopback(url: str) -> bool:
    """Whether the address is this machine's own."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
