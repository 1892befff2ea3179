"""Whatever is wrong with the input, the answer is a clear message: never a traceback, and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, Machine, make_machine
from tests.support.waiting import eventually


def answer_to(machine: Machine, data: bytes) -> dict[str, object]:
    """The first answer to a line of bytes on the socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(os.fspath(machine.socket))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused while we were still talking
            client.sendall(data + b"\n")
        with client.makefile("rb") as answers:
            answer: dict[str, object] = json.loads(answers.readline())
        return answer


def code_of(answer: dict[str, object]) -> int:
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["message"]
    return int(error["code"])


def test_bad_requests_get_typed_errors_and_good_ones_go_on_being_answered(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    machine.env = {"MEMORYD_SERVER__MAX_REQUEST_BYTES": "4096"}
    with machine.daemon() as daemon:
        assert code_of(answer_to(machine, b"this is no json")) == -32700
        assert code_of(answer_to(machine, b"\xff\xfe\x00")) == -32700
        assert code_of(answer_to(machine, b"[]")) == -32600
        assert code_of(answer_to(machine, b'{"jsonrpc":"2.0","id":1}')) == -32600
        assert code_of(answer_to(machine, b'{"jsonrpc":"2.0","id":1,"method":"nonsense"}')) == -32601
        for params in (
            {}, {"query": 7}, {"query": "x", "limit": 0}, {"query": "x", "limits": 3}, {"query": "x", "min_score": "y"},
        ):  # fmt: skip
            request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "search", "params": params}).encode()
            assert code_of(answer_to(machine, request)) == -32602, params
        oversized = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"' + b"x" * 5000 + b'"}'
        assert "error" in answer_to(machine, oversized)
        answer_to(machine, b"[" * 3000)
        for query in ('"', "'", "*", "AND", "NEAR(", 'a" OR "b', "\x00", "%", "-", "()", "🦊", "é", "\ud83d", " "):
            request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "search", "params": {"query": query}}).encode()
            answer_to(machine, request)
        assert daemon.call("ping")["pong"]
        daemon.wait_for("lighthouse", "memory/a.md")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("get", "memory/none.md"), 1),
        (("get", "../secret.md"), 1),
        (("get", "/etc/passwd"), 1),
        (("get", "memory/a.md:99"), 2),
        (("get", "memory/a.md:2-1"), 2),
        (("search", "x", "--limit", "0"), 2),
        (("search", "x", "--limit", "many"), 2),
        (("search", "x", "--workspace", "none"), 2),
        (("search",), 2),
        (("index", "../outside"), 1),
        (("nonsense",), 2),
        ((), 2),
    ],
)
def test_bad_commands_fail_with_a_message(daily: Machine, words: tuple[str, ...], code: int) -> None:
    done = daily.run(*words)
    assert done.returncode == code, done.stderr
    assert done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_error_of_a_command_with_json_is_json_too(daily: Machine) -> None:
    done = daily.run("get", "memory/none.md", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "not_found"


@pytest.fixture(scope="module")
def daily(tmp_path_factory: pytest.TempPathFactory, default_model: Path, models_dir: Path) -> Iterator[Machine]:
    """One daemon for the commands that change nothing."""
    with make_machine(tmp_path_factory.mktemp("daily"), models_dir) as machine:
        machine.write("memory/a.md", "The lighthouse keeper.\n")
        with machine.daemon() as daemon:
            daemon.settle()
            yield machine


@pytest.mark.parametrize("command", [("status",), ("search", "x"), ("get", "a.md"), ("status", "--watch")])
def test_without_a_daemon_commands_say_so(machine: Machine, command: tuple[str, ...]) -> None:
    done = machine.run(*command)
    assert done.returncode == 3
    assert "memoryd run" in done.stderr
    assert done.stdout == ""


def test_all_problems_of_a_configuration_are_told_at_once(machine: Machine) -> None:
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(
        '[[workspace]]\npath = "notes"\n[serach]\nlimit = 3\n[index]\nchunk_token = 100\nmax_attempts = "many"\n'
    )
    for words in (("run",), ("config", "check"), ("search", "x"), ("index",)):
        done = machine.run(*words, MEMORYD_WORKSPACE="")
        assert done.returncode == 2, words
        assert "Traceback" not in done.stderr
        for clue in ("serach", "search", "chunk_token", "chunk_tokens", "max_attempts"):
            assert clue in done.stderr, (words, clue)


def test_configuration_that_is_no_toml_is_told_with_its_line(machine: Machine) -> None:
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text("[index\n")
    done = machine.run("run")
    assert done.returncode == 2
    assert "config.toml:1:" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_workspace_is_told_and_served_when_it_appears(machine: Machine) -> None:
    shutil.rmtree(machine.root)
    with machine.daemon() as daemon:
        reason = eventually(lambda: daemon.health().get("workspace_unavailable"))
        assert str(machine.root) in reason["message"]
        assert reason["hint"]
        assert machine.run("status").returncode == 4
        machine.write("memory/a.md", "The lighthouse keeper.\n")
        daemon.wait_for("lighthouse", "memory/a.md")
        eventually(lambda: daemon.health() == {})


def test_odd_files_are_read_or_named_in_status(machine: Machine) -> None:
    machine.env = {"MEMORYD_INDEX__MAX_FILE_BYTES": "20000"}
    machine.write("memory/fine.md", "The lighthouse keeper.\n")
    machine.write("memory/latin1.md", b"Caf\xe9 by the lighthouse, with some more words.\n")
    machine.write("memory/binary.md", bytes(range(256)) * 8)
    machine.write("memory/huge.md", "lighthouse " * 3000)
    machine.write("memory/broken.md", "---\ntitle: [\n---\nThe lighthouse again.\n")
    machine.write("memory/nul.md", b"A lighthouse with a nul \0 in the middle of it.\n")
    os.mkfifo(machine.root / "memory/pipe.md")
    (machine.root / "memory/passwd.md").symlink_to("/etc/passwd")
    Path(os.fsdecode(os.fsencode(machine.root) + b"/memory/\xff\xfe.md")).write_text("x")
    with machine.daemon() as daemon:
        daemon.settle()
        found = {f"memory/{name}.md" for name in ("fine", "latin1", "broken", "nul")}
        assert set(daemon.found("lighthouse")) == found
        named = {entry["path"]: entry["reason"] for entry in daemon.call("status")["workspaces"][0]["skipped"]}
        assert set(named) == {
            *(f"memory/{name}.md" for name in ("latin1", "binary", "huge", "broken", "nul", "pipe", "passwd")),
            "memory/��.md",
        }
        assert all(named.values())
        assert machine.run("status").returncode == 0
        # and the watcher has survived them
        Path(os.fsdecode(os.fsencode(machine.root) + b"/memory/\xfd.md")).write_text("x")
        machine.write("memory/later.md", "A violin.\n")
        daemon.wait_for("violin", "memory/later.md")


def keyword_only(daemon: Daemon, machine: Machine) -> dict[str, str]:
    """Search works by words and says why; status is degraded. Returns the degradation."""
    daemon.wait_for("lighthouse", "memory/a.md")
    eventually(lambda: "embedder_failed" in daemon.health())
    degraded: dict[str, str] = daemon.call("search", query="lighthouse")["degraded"]
    assert degraded["leg"] == "vector"
    assert degraded["hint"]
    assert degraded["reason"] in daemon.health()["embedder_failed"]["message"]
    done = machine.run("search", "lighthouse")
    assert done.returncode == 0
    assert degraded["reason"] in done.stderr
    assert machine.run("status").returncode == 4
    assert machine.run("index").returncode == 4
    return degraded


def test_missing_model_leaves_words_and_says_what_to_do(machine: Machine, default_model: Path) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    empty = machine.folder / "cache"
    machine.env = {"MEMORYD_PATHS__CACHE": str(empty), "MEMORYD_EMBEDDER__AUTO_INSTALL": "false"}
    with machine.daemon() as daemon:
        degraded = keyword_only(daemon, machine)
        assert "not installed" in degraded["reason"]
        assert "model install" in degraded["hint"]
        # the model appears, and is taken up when asked to try again
        shutil.copytree(machine.models, empty / "models", dirs_exist_ok=True)
        daemon.call("index", force=True)
        eventually(lambda: daemon.call("search", query="lighthouse")["degraded"] is None)
        eventually(lambda: daemon.health() == {})


def test_corrupt_model_leaves_words_and_says_what_to_do(machine: Machine, default_model: Path) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    broken = machine.folder / "broken.gguf"
    data = bytearray(default_model.read_bytes())
    broken.write_bytes(data[: len(data) // 2])
    machine.env = {"MEMORYD_EMBEDDER__MODEL": str(broken)}
    with machine.daemon() as daemon:
        keyword_only(daemon, machine)


def test_data_folder_that_cannot_be_made_is_told(machine: Machine) -> None:
    (machine.folder / "file").write_text("x")
    done = machine.run("run", MEMORYD_PATHS__DATA=str(machine.folder / "file/data"))
    assert done.returncode in (1, 2)
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr
