"""A language model behind an OpenAI-compatible HTTP API: a service, or a server on this machine."""

from __future__ import annotations

import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from memoryd.jobs.keys import ReadKey
from memoryd.jobs.llm.background import in_background
from memoryd.jobs.llm.protocol import Message
from memoryd.jobs.models.transport import parse_retry_after
from memoryd.store.errors import LanguageModelRefused, LanguageModelUnavailable

if TYPE_CHECKING:
    import httpx

_LARGEST_ANSWER: Final = 1_000_000  # bytes
_LONGEST_DETAIL: Final = 300  # characters of a server's own words
_CHECK_URL: Final = "Check llm.base_url: it ends where /chat/completions begins, often in /v1."
_CHECK_KEY: Final = "Check the key that llm.api_key_env or llm.api_key_file names."


class OpenAiModel:
    def __init__(self, base_url: str, model: str, read_key: ReadKey | None = None) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._model = model
        self._read_key = read_key
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._under_way: set[Future[str]] = set()
        self._closed = False

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float, temperature: float = 0.0
    ) -> str:
        deadline = time.monotonic() + timeout_s
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": _encodable(message.content)} for message in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        # In a thread of its own, as the library limits each read but not the whole: a server that sends a byte
        # now and then would hold the caller for ever.
        with self._lock:
            if self._closed:
                raise _closed()
            asked = in_background(lambda: self._ask(body, deadline), "llm-request")
            self._under_way.add(asked)
        try:
            return asked.result(timeout_s)
        except CancelledError:
            raise _closed() from None
        except TimeoutError:  # of this wait, or of the request itself
            raise LanguageModelUnavailable(
                f"{self._url} took longer than {timeout_s:g} s", hint="Allow it more time, or use a quicker model."
            ) from None
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

    def _ask(self, body: dict[str, Any], deadline: float) -> str:
        key = self._read_key() if self._read_key else ""
        status, headers, data = self._post(body, key, deadline)
        if status == 400 and b"max_completion_tokens" in data:  # some models want it by its later name, and no heat
            renamed = {name: value for name, value in body.items() if name != "temperature"}
            renamed["max_completion_tokens"] = renamed.pop("max_tokens")
            status, headers, data = self._post(renamed, key, deadline)
        if status != 200:
            raise self._failure(status, headers, data, key)
        try:
            content = json.loads(data)["choices"][0]["message"]["content"] or ""  # null: it only thought
        except (ValueError, LookupError, TypeError, RecursionError):
            content = None
        if not isinstance(content, str):
            raise LanguageModelRefused(f"{self._url} does not answer as the API does", hint=_CHECK_URL)
        return content

    def _post(self, body: dict[str, Any], key: str, deadline: float) -> tuple[int, httpx.Headers, bytes]:
        import httpx

        headers = {"Authorization": f"Bearer {key}"} if key else {}
        remaining = max(0.001, deadline - time.monotonic())  # for each step; together they are stopped below
        data = b""
        try:
            with self._open().stream("POST", self._url, json=body, headers=headers, timeout=remaining) as response:
                for piece in response.iter_bytes():
                    data += piece
                    if time.monotonic() > deadline:
                        raise TimeoutError
                    if len(data) > _LARGEST_ANSWER:
                        break
                return response.status_code, response.headers, data
        except httpx.TimeoutException:
            raise TimeoutError from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Not chained: the library's error holds the request, and that the key.
            raise LanguageModelUnavailable(
                f"{self._url} cannot be asked: {str(error) or type(error).__name__}",
                hint="Check that it runs, llm.base_url, the proxy variables and SSL_CERT_FILE.",
            ) from None

    def _open(self) -> httpx.Client:
        """A client that follows no redirect, which would take the key along, and no proxy to this machine itself."""
        import httpx

        with self._lock:
            if self._closed:
                raise _closed()
            if self._client is None:
                self._client = httpx.Client(
                    verify=ssl.create_default_context(),
                    trust_env=not is_loopback(self._url),
                    headers={"User-Agent": "memoryd"},
                )
            return self._client

    def _failure(
        self, status: int, headers: httpx.Headers, data: bytes, key: str
    ) -> LanguageModelRefused | LanguageModelUnavailable:
        kind, detail = _error_of(data)
        if key:
            detail = detail.replace(key, "…")
        said = f"{self._url} answered {status}" + (f": {detail}" if detail else "")
        if status in (401, 403):  # some quote the key that they refuse
            return LanguageModelRefused(f"{self._url} answered {status}", hint=_CHECK_KEY)
        if kind == "insufficient_quota":
            return LanguageModelRefused(said, hint="See to the account's quota.")
        if status in (408, 429) or status >= 500:
            wait = parse_retry_after(headers.get("Retry-After"), time.time())
            return LanguageModelUnavailable(said, hint=f"Ask again in {wait:g} s." if wait else "Ask again later.")
        if status == 404:
            return LanguageModelRefused(said, hint=f"Check llm.model. {_CHECK_URL}")
        return LanguageModelRefused(said, hint=_CHECK_URL)


def is_loopback(url: str) -> bool:
    """Whether the address is this machine's own."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _encodable(text: str) -> str:
    """Without the lone halves of characters that a file name or a client can bring in."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _error_of(data: bytes) -> tuple[str, str]:
    """The code and the words of an error as such servers write it; the words alone of any other short text."""
    try:
        error = json.loads(data)
        error = error.get("error", error) if isinstance(error, dict) else error
        if isinstance(error, dict):
            return str(error.get("code") or ""), str(error.get("message") or "")[:_LONGEST_DETAIL]
        return "", str(error)[:_LONGEST_DETAIL]
    except (ValueError, RecursionError):
        return "", ""


def _closed() -> LanguageModelUnavailable:
    return LanguageModelUnavailable("the language model is closed", hint="Ask again once memoryd runs.")
