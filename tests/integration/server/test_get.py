"""``get`` serves what is indexed, and nothing else that a path could be made to mean."""

import json
import threading
import unicodedata

import pytest

NFC = "memory/caf\u00e9.md"


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret.md"
    file.write_text("SECRET\n")
    return file


@pytest.fixture
def asked(memory, served, raw_client, path, secret):
    """A client of a memory with notes, links and things that are not indexed."""
    memory.write("memory/a.md", "one\ntwo\nthree\n")
    memory.write(NFC, "coffee\n")
    memory.write("private.txt", "SECRET\n")
    memory.write(".git/config.md", "SECRET\n")
    memory.write("memory/.hidden.md", "SECRET\n")
    (memory.root / "memory/link.md").symlink_to("a.md")
    (memory.root / "memory/absolute.md").symlink_to(memory.root / "memory/a.md")
    (memory.root / "memory/out.md").symlink_to(secret)
    (memory.root / "memory/out").symlink_to(secret.parent)
    with served(memory, path), raw_client(path) as client:
        memory.settle()
        yield client


def get(client, path, **params):
    client.ask("get", path=path, **params)
    return client.read()


def test_indexed_notes_are_served_also_through_links_inside(asked):
    for name in ("memory/a.md", "memory/link.md", "memory/absolute.md", "./memory//a.md"):
        assert get(asked, name)["result"]["text"] == "one\ntwo\nthree", name


REFUSED = [
    ("../secret.md", "path_refused"),
    ("memory/../../secret.md", "path_refused"),
    ("memory/..", "path_refused"),
    ("/etc/passwd", "path_refused"),
    ("//etc/passwd", "path_refused"),
    ("memory/a.md\0", "path_refused"),
    ("memory/a.md\0.png", "path_refused"),
    (".", "path_refused"),
    ("memory/" + "a/" * 40_000 + "a.md", "path_refused"),
    ("memory/out.md", "not_found"),
    ("memory/out/secret.md", "not_found"),
    ("private.txt", "not_found"),
    (".git/config.md", "not_found"),
    ("memory/.hidden.md", "not_found"),
    ("memory", "not_found"),
    ("~/.ssh/id_ed25519", "not_found"),
    ("file:///etc/passwd", "not_found"),
    ("memory%2fa.md", "not_found"),
    ("memory\\a.md", "not_found"),
    ("MEMORY/A.MD", "not_found"),
    ("memory/a.md ", "not_found"),
    ("memory/a.md\u200b", "not_found"),
    ("memory/\u202ea.md", "not_found"),
    ("memory/\uff41.md", "not_found"),
    ("memory\u2215a.md", "not_found"),
    ("memory\uff0fa.md", "not_found"),
    ("\uff0e\uff0e/secret.md", "not_found"),
    ("\u2024\u2024/secret.md", "not_found"),
    (unicodedata.normalize("NFD", NFC), "not_found"),
]


def test_whatever_else_a_path_says_is_refused(asked):
    for name, code in REFUSED:
        answer = get(asked, name)
        assert answer["error"]["data"]["code"] == code, name
        assert "SECRET" not in json.dumps(answer)
        assert len(answer["error"]["message"]) < 500
    assert get(asked, NFC)["result"]["text"] == "coffee"


def test_overlong_utf8_is_no_text(asked):
    asked.send(b'{"jsonrpc":"2.0","id":1,"method":"get","params":{"path":"memory\xc0\xafa.md"}}')
    assert asked.read_error() == "parse_error"
    asked.send(b'{"jsonrpc":"2.0","id":1,"method":"get","params":{"path":"memory/\\ud800.md"}}')
    assert asked.read_error() == "invalid_params"


def test_links_that_are_swapped_while_it_reads_never_lead_out(asked, memory, secret):
    target = memory.root / "memory/a.md"
    aside = memory.root / "aside"
    ended = threading.Event()

    def swap():
        while not ended.is_set():
            target.rename(aside)
            target.symlink_to(secret)
            target.unlink()
            aside.rename(target)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        answers = [get(asked, "memory/a.md") for _ in range(1500)]
    finally:
        ended.set()
        swapping.join()
    texts = {answer["result"]["text"] for answer in answers if "result" in answer}
    codes = {answer["error"]["data"]["code"] for answer in answers if "error" in answer}
    assert texts == {"one\ntwo\nthree"}
    assert codes <= {"not_found"}


def test_fenced_text_is_inside_the_fence(asked):
    document = get(asked, "memory/a.md#L2", fence=True)["result"]
    first, inside, last = document["text"].split("\n")
    assert (inside, last) == ("two", document["fence"]["end"])
    origin = json.loads(first.removeprefix(document["fence"]["begin"]))
    assert origin == {"workspace": "notes", "path": "memory/a.md", "start_line": 2, "end_line": 2}
