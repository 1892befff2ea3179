"""HTTP as the downloads use it: trust, proxies, credentials kept out of sight, and which failures pass."""

from __future__ import annotations

import email.utils
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from memoryd.store.errors import DownloadFailed, DownloadRefused

if TYPE_CHECKING:
    import httpx

ATTEMPTS: Final = 5
LONGEST_WAIT: Final = 30.0  # seconds, whatever the server asks for
ONLINE: Final = "Check the network, the proxy variables and SSL_CERT_FILE, then try again."

Result = TypeVar("Result")
Pause = Callable[[float], None]


class TransientError(Exception):
    """A failure that may pass by itself."""

    def __init__(self, reason: str, *, wait: float | None = None) -> None:
        self.reason = reason
        self.wait = wait  # seconds, where the server said so
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Address:
    """A URL taken apart, so that its credentials are sent but never shown."""

    url: str  # without user, password and fragment
    auth: tuple[str, str] | None

    @property
    def shown(self) -> str:
        """For messages: signed query strings are secrets too."""
        return self.url.partition("?")[0]


def parse_address(url: str) -> Address:
    parts = urlsplit(url)
    auth = None
    if parts.username or parts.password:
        auth = (unquote(parts.username or ""), unquote(parts.password or ""))
    host = parts.netloc.rpartition("@")[2]
    return Address(urlunsplit((parts.scheme, host, parts.path, parts.query, "")), auth)


def open_client() -> httpx.Client:
    """A client that trusts what the system trusts, SSL_CERT_FILE included, and uses its proxies."""
    import httpx

    return httpx.Client(
        verify=ssl.create_default_context(),
        follow_redirects=True,
        timeout=httpx.Timeout(30.0, connect=10.0),
        headers={"User-Agent": "memoryd", "Accept-Encoding": "identity"},
    )


def check_status(response: httpx.Response, address: Address) -> None:
    """Raise ``TransientError`` for what may pass, ``DownloadRefused`` for what will not."""
    if response.is_success:
        return
    status = f"{address.shown} answered {response.status_code} {response.reason_phrase}".rstrip()
    if response.status_code in (408, 429) or response.status_code >= 500:
        raise TransientError(status, wait=parse_retry_after(response.headers.get("Retry-After"), time.time()))
    if response.status_code in (401, 403, 407):
        raise DownloadRefused(status, hint="Give credentials that may read it, or use another source.")
    raise DownloadRefused(status, hint="Check the name; the file may have been moved or withdrawn.")


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait, from either form of the header."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return None


def raise_for(error: httpx.HTTPError, address: Address) -> NoReturn:
    """Sort the library's errors: a broken connection may pass, a refused certificate will not."""
    import httpx

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise DownloadFailed(
                f"the certificate of {address.shown} is not trusted: {cause.verify_message}",
                hint="Set SSL_CERT_FILE to the certificates that your network uses.",
            ) from error
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol):
        raise TransientError(f"{address.shown}: {str(error) or type(error).__name__}") from error
    raise DownloadFailed(f"{address.shown}: {error}", hint=ONLINE) from error


def with_retries(action: Callable[[], Result], measure: Callable[[], int], pause: Pause) -> Result:
    """Repeat ``action`` while its failures may pass; the budget is renewed when ``measure`` has grown."""
    failures, furthest = 0, measure()
    while True:
        try:
            return action()
        except TransientError as problem:
            if (reached := measure()) > furthest:
                failures, furthest = 0, reached
            failures += 1
            if failures >= ATTEMPTS:
                raise DownloadFailed(problem.reason, hint=ONLINE) from problem
            wait = problem.wait if problem.wait is not None else 0.5 * 2 ** (failures - 1)
            pause(min(wait, LONGEST_WAIT))
