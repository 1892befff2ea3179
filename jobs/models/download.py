"""One file from the network to the disk: resumed after a break, verified, and never half there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memoryd.jobs.models.disk import disk_errors, hash_file, publish
from memoryd.jobs.models.transport import (
    Address,
    Pause,
    TransientError,
    check_status,
    open_client,
    parse_address,
    raise_for,
    with_retries,
)
from memoryd.store.errors import ChecksumMismatch
from memoryd.store.failpoints import failpoint

if TYPE_CHECKING:
    import httpx

_SHA256: Final = re.compile(r'"?([0-9a-f]{64})"?')

DownloadProgress = Callable[[int, int | None], None]


def download(
    url: str,
    destination: Path,
    *,
    sha256: str | None,
    progress: DownloadProgress,
    pause: Pause = time.sleep,
) -> str:
    """Fetch ``url`` to ``destination`` and return its sha256.

    Bytes gather in ``<destination>.part``; a later call continues it if the server still has the same file.
    Without a given ``sha256`` the one that the model hub states is used. ``destination`` appears whole and
    verified, or not at all.
    """
    if sha256 is not None and destination.exists() and hash_file(destination) == sha256:
        return sha256
    transfer = _Transfer(parse_address(url), destination, sha256, progress)
    with disk_errors(destination), open_client() as client:
        return with_retries(lambda: transfer.run(client), transfer.size, pause)


class _Transfer:
    """The part file, its validator (the ETag that says whose part it is), and one attempt after another."""

    def __init__(self, address: Address, destination: Path, sha256: str | None, progress: DownloadProgress) -> None:
        self._address = address
        self._destination = destination
        self._sha256 = sha256
        self._progress = progress
        self._part = destination.with_name(f"{destination.name}.part")
        self._validator = destination.with_name(f"{destination.name}.part.etag")

    def size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def run(self, client: httpx.Client) -> str:
        """One attempt; raises ``TransientError`` where another may get further."""
        import httpx

        offset = self._resumable_bytes()
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        if offset and (validator := self._read_validator()):
            headers["If-Range"] = validator
        auth = httpx.BasicAuth(*self._address.auth) if self._address.auth else None
        try:
            with client.stream("GET", self._address.url, headers=headers, auth=auth) as response:
                stated = self._sha256 or _stated_sha256(response)
                if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                    self._finish_or_drop(response, offset)
                else:
                    check_status(response, self._address)
                    self._receive(response, offset)
        except httpx.HTTPError as error:
            raise_for(error, self._address)
        return self._finish(stated, resumed=offset > 0)

    def _resumable_bytes(self) -> int:
        """How much of the part is worth keeping: nothing, if nobody could tell that it is the same file."""
        if self._sha256 is None and not self._read_validator():
            self._drop()
        return self.size()

    def _receive(self, response: httpx.Response, offset: int) -> None:
        if _range_start(response) != offset:
            if response.status_code == 206:
                self._drop()
                raise TransientError(f"{self._address.shown} answered another range than the one asked for")
            offset = 0  # 200: the file has changed, or the server knows no ranges
        length = response.headers.get("Content-Length", "")
        total = offset + int(length) if length.isdigit() else None
        etag = response.headers.get("ETag", "")
        with self._part.open("ab" if offset else "wb") as file:
            # After the part was emptied: older bytes must never stand beside a newer validator. A weak one
            # does not promise the same bytes.
            self._validator.write_text("" if etag.startswith("W/") else etag, encoding="utf-8")
            self._progress(offset, total)
            for piece in response.iter_raw():
                file.write(piece)
                file.flush()
                offset += len(piece)
                self._progress(offset, total)

    def _finish_or_drop(self, response: httpx.Response, offset: int) -> None:
        """The server has nothing after the part: it is whole already, or of another file."""
        if response.headers.get("Content-Range") != f"bytes */{offset}":
            self._drop()
            raise TransientError(f"{self._address.shown} has fewer bytes than the part")

    def _finish(self, stated: str | None, *, resumed: bool) -> str:
        failpoint("model.download.finished")
        actual = hash_file(self._part)
        if stated is not None and actual != stated:
            self._drop()
            if resumed:  # the older bytes may be at fault: once more from the start
                raise TransientError(f"{self._address.shown}: the resumed file has the wrong checksum")
            raise ChecksumMismatch(
                f"{self._address.shown} has the sha256 {actual[:12]}…, expected {stated[:12]}…",
                hint="Try again; if it stays so, the source or a proxy in between serves another file.",
            )
        failpoint("model.download.verified")
        publish(self._part, self._destination)
        failpoint("model.download.renamed")
        self._drop()
        return actual

    def _read_validator(self) -> str:
        return self._validator.read_text(encoding="utf-8").strip() if self._validator.exists() else ""

    def _drop(self) -> None:
        self._part.unlink(missing_ok=True)
        self._validator.unlink(missing_ok=True)


def _stated_sha256(response: httpx.Response) -> str | None:
    """The hub names a large file by its sha256, in a header of the answer that redirects to the bytes."""
    for answer in (*response.history, response):
        for header in ("X-Linked-ETag", "ETag"):
            if match := _SHA256.fullmatch(answer.headers.get(header, "")):
                return match[1]
    return None


def _range_start(response: httpx.Response) -> int:
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match and response.status_code == 206 else 0
