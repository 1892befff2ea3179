"""Downloading from a real server that breaks off, lies, moves and comes back."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from memoryd.jobs.models.download import download
from memoryd.jobs.models.transport import ATTEMPTS
from memoryd.store.errors import ChecksumMismatch, DownloadFailed, StoreFull, StoreUnavailable
from tests.support.file_server import FileServer, Trouble

BODY = bytes(range(256)) * 4096  # 1 MiB
SHA256 = hashlib.sha256(BODY).hexdigest()


class Fetch:
    """``download`` into one folder, with its progress and its pauses written down."""

    def __init__(self, folder: Path) -> None:
        self.destination = folder / "file.bin"
        self.part = folder / "file.bin.part"
        self.progress: list[tuple[int, int | None]] = []
        self.pauses: list[float] = []

    def __call__(self, url: str, sha256: str | None = SHA256) -> str:
        return download(
            url,
            self.destination,
            sha256=sha256,
            progress=lambda done, total: self.progress.append((done, total)),
            pause=self.pauses.append,
        )

    def leave_part(self, data: bytes, etag: str | None) -> None:
        self.part.write_bytes(data)
        if etag is not None:
            self.part.with_name("file.bin.part.etag").write_text(etag)

    def leftovers(self) -> list[str]:
        return sorted(path.name for path in self.part.parent.iterdir() if path != self.destination)


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    return Fetch(tmp_path)


def test_file_arrives_whole_with_its_progress(file_server: FileServer, fetch: Fetch) -> None:
    assert fetch(file_server.serve("/file", BODY)) == SHA256
    assert fetch.destination.read_bytes() == BODY
    assert fetch.progress[0] == (0, len(BODY))
    assert fetch.progress[-1] == (len(BODY), len(BODY))
    assert fetch.leftovers() == []


def test_file_already_there_is_not_fetched_again(file_server: FileServer, fetch: Fetch) -> None:
    fetch.destination.write_bytes(BODY)
    fetch(file_server.serve("/file", BODY))
    assert file_server.requests == []


def test_broken_connection_is_resumed_where_it_broke(file_server: FileServer, fetch: Fetch) -> None:
    url = file_server.serve("/file", BODY, troubles=[Trouble(reset_after=300_000), Trouble(reset_after=1)])
    fetch(url)
    assert fetch.destination.read_bytes() == BODY
    assert file_server.ranges_asked("/file") == [None, "bytes=300000-", "bytes=300001-"]


def test_more_breaks_than_attempts_are_survived_while_bytes_arrive(file_server: FileServer, fetch: Fetch) -> None:
    troubles = [Trouble(reset_after=50_000) for _ in range(ATTEMPTS * 2)]
    fetch(file_server.serve("/file", BODY, troubles=troubles))
    assert fetch.destination.read_bytes() == BODY


def test_later_call_continues_the_part(file_server: FileServer, fetch: Fetch) -> None:
    fetch.leave_part(BODY[:1000], '"v1"')
    fetch(file_server.serve("/file", BODY))
    assert file_server.ranges_asked("/file") == ["bytes=1000-"]
    assert fetch.destination.read_bytes() == BODY


def test_changed_file_starts_over(file_server: FileServer, fetch: Fetch) -> None:
    fetch.leave_part(b"bytes of an older version", '"v0"')
    fetch(file_server.serve("/file", BODY), sha256=None)
    assert fetch.destination.read_bytes() == BODY


def test_server_without_ranges_starts_over(file_server: FileServer, fetch: Fetch) -> None:
    url = file_server.serve("/file", BODY, ranges=False, troubles=[Trouble(reset_after=300_000)])
    fetch(url)
    assert fetch.destination.read_bytes() == BODY


def test_part_of_unknown_origin_is_not_trusted(file_server: FileServer, fetch: Fetch) -> None:
    fetch.leave_part(b"whose bytes are these", None)
    fetch(file_server.serve("/file", BODY), sha256=None)
    assert file_server.ranges_asked("/file") == [None]
    assert fetch.destination.read_bytes() == BODY


def test_part_with_wrong_bytes_is_fetched_again_from_the_start(file_server: FileServer, fetch: Fetch) -> None:
    fetch.leave_part(b"damaged", '"v1"')
    fetch(file_server.serve("/file", BODY))
    assert file_server.ranges_asked("/file") == ["bytes=7-", None]
    assert fetch.destination.read_bytes() == BODY


def test_finished_part_is_only_verified(file_server: FileServer, fetch: Fetch) -> None:
    fetch.leave_part(BODY, '"v1"')
    fetch(file_server.serve("/file", BODY))
    assert fetch.destination.read_bytes() == BODY
    assert len(file_server.requests) == 1


def test_part_longer_than_the_file_starts_over(file_server: FileServer, fetch: Fetch) -> None:
    fetch.leave_part(BODY + b"more", '"v1"')
    fetch(file_server.serve("/file", BODY))
    assert fetch.destination.read_bytes() == BODY


def test_wrong_bytes_are_refused_and_removed(file_server: FileServer, fetch: Fetch) -> None:
    with pytest.raises(ChecksumMismatch) as caught:
        fetch(file_server.serve("/file", b"doctored" + BODY))
    assert caught.value.hint
    assert not fetch.destination.exists()
    assert fetch.leftovers() == []


def test_hub_s_own_checksum_is_enforced_through_its_redirect(file_server: FileServer, fetch: Fetch) -> None:
    target = file_server.serve("/bytes", BODY)
    stated = {"X-Linked-ETag": f'"{SHA256}"'}
    assert fetch(file_server.serve("/good", b"", redirect=target, headers=stated), sha256=None) == SHA256
    fetch.destination.unlink()
    stated = {"X-Linked-ETag": f'"{"0" * 64}"'}
    with pytest.raises(ChecksumMismatch):
        fetch(file_server.serve("/bad", b"", redirect=target, headers=stated), sha256=None)


def test_server_errors_are_waited_out_as_long_as_it_asks(file_server: FileServer, fetch: Fetch) -> None:
    troubles = [Trouble(status=503), Trouble(status=429, headers=(("Retry-After", "7"),)), Trouble(status=500)]
    fetch(file_server.serve("/file", BODY, troubles=troubles))
    assert fetch.destination.read_bytes() == BODY
    assert fetch.pauses == [0.5, 7.0, 2.0]


def test_server_that_stays_down_is_given_up_on_and_the_part_kept(file_server: FileServer, fetch: Fetch) -> None:
    troubles = [Trouble(reset_after=1000), *(Trouble(status=502) for _ in range(50))]
    with pytest.raises(DownloadFailed) as caught:
        fetch(file_server.serve("/file", BODY, troubles=troubles))
    assert "502" in caught.value.message
    assert caught.value.hint
    assert len(fetch.pauses) == ATTEMPTS - 1
    assert fetch.part.stat().st_size == 1000


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_refusal_is_final(file_server: FileServer, fetch: Fetch, status: int) -> None:
    with pytest.raises(DownloadFailed) as caught:
        fetch(file_server.serve("/file", BODY, troubles=[Trouble(status=status)] * 9))
    assert str(status) in caught.value.message
    assert caught.value.hint
    assert fetch.pauses == []


def test_nobody_listening_is_a_download_failure(fetch: Fetch) -> None:
    with pytest.raises(DownloadFailed) as caught:
        fetch("http://127.0.0.1:9/file")
    assert "127.0.0.1:9" in caught.value.message
    assert caught.value.hint


def test_credentials_are_sent_and_never_shown(
    file_server: FileServer, fetch: Fetch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    path = file_server.serve("/file?token=s3cret", BODY).replace("http://", "http://ana:pa%24s@")
    file_server.files["/file"] = file_server.files.pop("/file?token=s3cret")
    file_server.files["/file"].login = "Basic YW5hOnBhJHM="
    fetch(path)
    file_server.files["/file"].login = "Basic b3RoZXI="
    fetch.destination.unlink()
    with pytest.raises(DownloadFailed) as caught:
        fetch(path)
    shown = caught.value.message + str(caught.value.hint)
    assert "pa$s" not in shown + caplog.text
    assert "pa%24s" not in shown + caplog.text
    assert "s3cret" not in shown


def test_full_disk_is_called_by_its_name(file_server: FileServer, fetch: Fetch) -> None:
    fetch.part.symlink_to("/dev/full")  # the kernel's own full disk
    with pytest.raises(StoreFull) as caught:
        fetch(file_server.serve("/file", BODY))
    assert caught.value.hint


def test_missing_folder_is_called_by_its_name(file_server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        Fetch(tmp_path / "nowhere")(file_server.serve("/file", BODY))
    assert "nowhere" in caught.value.message
