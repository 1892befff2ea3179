"""However much is asked for, one client has the daemon keep only so much of the answers."""

import os
import subprocess
import sys
from pathlib import Path

from memoryd.daemon.dispatch import Method
from memoryd.daemon.document_methods import PAGE_BYTES
from memoryd.daemon.limits import Limits
from tests.support.daemon import PROGRAM

MIB = 1024 * 1024


def requests(method, count, **params):
    return [{"jsonrpc": "2.0", "id": n, "method": method, "params": params} for n in range(count)]


def environment(path):
    return {**os.environ, "MEMORYD_PATHS__SOCKET": str(path), "MEMORYD_WORKSPACE": str(path.parent)}


def write_long_notes(memory):
    """Notes that are indexed, and have grown since: ``get`` reads them as they are now."""
    text = "".join(f"{number:07d} " + "goat " * 20 + "\n" for number in range(3 * PAGE_BYTES // 100))
    for name in ("memory/long.md", "memory/line.md"):
        memory.write(name, "short\n")
    memory.settle()
    memory.write("memory/long.md", text)
    memory.write("memory/line.md", "first\n" + "x" * (PAGE_BYTES + 1) + "\nlast\n")
    return text


def test_long_document_comes_in_pages_of_whole_lines(memory, served, raw_client, path):
    with served(memory, path), raw_client(path) as client:
        long_note = write_long_notes(memory)
        read, first, pages = [], 1, 0
        while first:
            client.ask("get", path="memory/long.md", **{"from": first, "to": 999_999_999})
            page = client.read()["result"]
            assert page["start_line"] == first
            assert len(page["text"]) <= PAGE_BYTES
            assert page["next"] in (None, page["end_line"] + 1)
            read.append(page["text"])
            first, pages = page["next"], pages + 1
        assert "\n".join(read) + "\n" == long_note
        assert pages > 2

        for asked in ("memory/long.md", "memory/long.md:2-30000"):  # the command line goes from page to page
            done = subprocess.run([PROGRAM, "get", asked], env=environment(path), capture_output=True, check=True)
            wanted = long_note.splitlines(keepends=True)[1:30000] if ":" in asked else [long_note]
            assert done.stdout.decode() == "".join(wanted)

        client.ask("get", path="memory/long.md#L5-L9")
        assert client.read()["result"]["next"] is None  # all that was asked for

        client.ask("get", path="memory/line.md")
        assert client.read()["result"]["next"] == 2
        client.ask("get", path="memory/line.md", **{"from": 2})
        error = client.read()["error"]["data"]
        assert (error["code"], str(memory.root / "memory/line.md") in error["hint"]) == ("answer_too_large", True)
        client.ask("get", path="memory/line.md#L3")
        assert client.read()["result"]["text"] == "last"


def test_batch_is_answered_as_far_as_it_fits_and_the_rest_is_told_so(running_server, raw_client, path):
    ran = []

    def large(params):
        ran.append(params)
        return "x" * MIB

    async def small(params):
        return "done"

    methods = {"large": Method(large), "small": Method(small)}
    with running_server(path, methods, limits=Limits(max_answer_bytes=4 * MIB)) as told, raw_client(path) as client:
        batch = requests("large", 60)
        client.send([*batch[:30], {"jsonrpc": "2.0", "id": "small", "method": "small"}, *batch[30:]])
        answers = {answer["id"]: answer for answer in client.read()}
        assert answers.keys() == {*range(60), "small"}
        errors = [answer["error"] for answer in answers.values() if "error" in answer]
        assert len(errors) > 50
        assert {error["data"]["code"] for error in errors} == {"answer_too_large"}
        assert all("fewer" in error["data"]["hint"] for error in errors)
        assert sum("result" in answers[n] for n in range(60)) == 3  # and the words around them
        assert len(ran) < 60  # what cannot be answered is not begun
        client.send(requests("large", 2))  # what was sent is not counted any more
        assert [len(answer["result"]) for answer in client.read()] == [MIB, MIB]
        assert not told.errors


SERVER = """
import sys
from pathlib import Path
from memoryd.daemon.dispatch import Method
from tests.integration.server.conftest import running_server

with running_server(Path(sys.argv[1]), {"large": Method(lambda params: "x" * 2**20)}) as told:
    print("serving", flush=True)
    sys.stdin.read()
"""


def test_batch_of_a_hundred_large_answers_takes_no_more_memory_than_a_few(raw_client, path):
    """The server is a process of its own, so that its memory is."""
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, path], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout.readline() == b"serving\n"
            grown = {}
            for count in (6, 6, 100):  # the first warms it up
                before = peak_bytes(process.pid, afresh=True)
                with raw_client(path) as client:
                    client.send(requests("large", count))
                    assert len(client.read()) == count
                grown[count] = peak_bytes(process.pid) - before
            assert grown[100] < 6 * max(grown[6], 8 * MIB), grown  # unbounded it is 16 times as much
        finally:
            process.stdin.close()
            process.wait(20)


def peak_bytes(pid, *, afresh=False):
    """The most memory that the process had, since it was last asked for afresh."""
    if afresh:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
