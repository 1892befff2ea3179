"""A file's bytes and the text in them, whatever they are."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.reading import decode_text, read_file
from memoryd.store.errors import FileUnreadable
from tests.support.privileges import public_folder, unprivileged


@pytest.mark.parametrize(
    ("data", "text", "notices"),
    [
        (b"", "", 0),
        (b"plain\n", "plain\n", 0),
        (b"one\r\ntwo\r\n", "one\ntwo\n", 0),
        ("\ufeffmarked".encode(), "marked", 0),
        ("小さな\r\nメモ".encode(), "小さな\nメモ", 0),
        ("wide".encode("utf-16"), "wide", 1),
        (b"\xfe\xff" + "wide".encode("utf-16-be"), "wide", 1),
        (b"Latin-1: caf\xe9 au lait, s'il vous pla\xeet", "Latin-1: caf\ufffd au lait, s'il vous pla\ufffdt", 1),
        (b"a nul \0 in a long enough line", "a nul \ufffd in a long enough line", 1),
        (b"cut in the middle of a character: \xe5\xb0", "cut in the middle of a character: \ufffd", 1),
    ],
)
def test_text_is_read_whatever_its_form(data: bytes, text: str, notices: int) -> None:
    found, said = decode_text(data)
    assert found == text
    assert len(said) == notices


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\x89PNG\r\n\x1a\n" + b"\0" * 64, b"\0", b"\xff" * 100])
def test_binary_is_no_text(data: bytes) -> None:
    assert decode_text(data)[0] is None


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    text, _ = decode_text(data)
    if text is not None:
        text.encode()
        assert "\0" not in text
        assert "\r\n" not in text


def test_file_is_read_whole_with_its_signature(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"hello")
    file = read_file(tmp_path / "a.md", tmp_path, 100)
    assert file is not None
    assert (file.data, file.size, file.too_large) == (b"hello", 5, False)
    assert file.signature.startswith("5:")


def test_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    (tmp_path / "fits.md").write_bytes(b"x" * 100)
    (tmp_path / "large.md").write_bytes(b"x" * 101)
    fits, large = (read_file(tmp_path / name, tmp_path, 100) for name in ("fits.md", "large.md"))
    assert fits is not None
    assert large is not None
    assert not fits.too_large
    assert (large.too_large, large.size, large.data) == (True, 101, b"")


def test_file_that_was_not_read_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "large.md").write_bytes(b"x" * 101)
    (tmp_path / "empty.md").write_bytes(b"")
    large, empty = (read_file(tmp_path / name, tmp_path, 100) for name in ("large.md", "empty.md"))
    assert large is not None
    assert empty is not None
    assert large.content_hash != empty.content_hash


def test_huge_sparse_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(1 << 40)
    found = read_file(tmp_path / "huge.md", tmp_path, 1000)
    assert found is not None
    assert found.too_large
    assert found.size == 1 << 40


def test_what_is_not_there_or_no_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop.md").symlink_to("loop.md")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)  # a socket's path must be short
        try:
            listener.bind("socket.md")
        finally:
            os.chdir(here)
        for name in ("gone.md", "folder.md", "file/below.md", "loop.md", "socket.md"):
            assert read_file(tmp_path / name, tmp_path, 100) is None, name


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        read_file(tmp_path / "folder.md", tmp_path, 100)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "out.md").symlink_to("../secret.md")
    (root / "folder").symlink_to("..")
    assert read_file(root / "out.md", root, 100) is None
    assert read_file(root / "folder/secret.md", root, 100) is None


def test_named_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    done = threading.Event()

    def read() -> None:
        assert read_file(tmp_path / "pipe.md", tmp_path, 100) is None
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(10)


def test_file_without_permission_is_unreadable_and_worth_another_try() -> None:
    with public_folder() as root:
        (root / "closed.md").write_text("x")
        (root / "closed.md").chmod(0o000)
        with unprivileged(), pytest.raises(FileUnreadable, match="Permission denied") as caught:
            read_file(root / "closed.md", root, 100)
    assert caught.value.retryable
    assert "closed.md" in (caught.value.hint or "")


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A root with a note, and every kind of link to it and out."""
    root = tmp_path / "root"
    (root / "memory/deep").mkdir(parents=True)
    (root / "memory/note.md").write_text("inside")
    (root / "memory/deep/note.md").write_text("deep")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/note.md").write_text("secret")
    (tmp_path / "way").symlink_to(root)
    links = {
        "relative.md": "memory/note.md",
        "memory/deep/up.md": "../../memory/note.md",
        "absolute.md": root / "memory/note.md",
        "chain.md": "absolute.md",
        "out-and-in.md": "../root/memory/note.md",
        "by-another-way.md": tmp_path / "way/memory/note.md",
        "folder": "memory/deep",
        "absolute-folder": root / "memory/deep",
        "self": ".",
        "secret.md": "../secret/note.md",
        "absolute-secret.md": tmp_path / "secret/note.md",
        "secret-folder": "../secret",
        "chain-to-secret.md": "secret.md",
        "circle.md": "circle.md",
        "circle-a": "circle-b",
        "circle-b": "circle-a",
        "nothing.md": "memory/none.md",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("relative.md", b"inside"),
        ("memory/deep/up.md", b"inside"),
        ("absolute.md", b"inside"),
        ("chain.md", b"inside"),
        ("out-and-in.md", b"inside"),
        ("by-another-way.md", b"inside"),
        ("folder/note.md", b"deep"),
        ("folder/up.md", b"inside"),
        ("absolute-folder/note.md", b"deep"),
        ("self/self/memory/note.md", b"inside"),
        ("secret.md", None),
        ("absolute-secret.md", None),
        ("secret-folder/note.md", None),
        ("self/secret-folder/note.md", None),
        ("chain-to-secret.md", None),
        ("circle.md", None),
        ("circle-a/note.md", None),
        ("nothing.md", None),
        ("memory", None),
        ("memory/note.md/more", None),
        ("memory/../memory/note.md", None),
        ("../secret/note.md", None),
        ("/etc/hostname", None),
        ("", None),
    ],
)
def test_links_are_followed_inside_the_root_and_never_out_of_it(linked: Path, path: str, text: bytes | None) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    file = read_file(linked / path, linked, 100)
    assert (file and file.data) == text
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_link_that_is_put_in_between_look_and_open_leads_nowhere(tmp_path: Path, swapped: str) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    for folder, text in ((root / "memory", "inside"), (secret, "secret")):
        folder.mkdir(parents=True)
        (folder / "note.md").write_text(text)
    target, other = (root / "memory/note.md", secret / "note.md") if swapped == "file" else (root / "memory", secret)
    aside = tmp_path / "aside"
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            target.rename(aside)
            target.symlink_to(other)
            target.unlink()
            aside.rename(target)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        texts = [file and file.data for file in (read_file(root / "memory/note.md", root, 100) for _ in range(20_000))]
    finally:
        ended.set()
        swapping.join()
    assert set(texts) == {b"inside", None}
