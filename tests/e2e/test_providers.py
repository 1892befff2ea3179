"""A service embeds for a running daemon, and none at all: as processes, with the command line beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, Machine
from tests.support.embedding_apis import COMPATIBLE
from tests.support.embedding_server import KEY, EmbeddingServer, run_embedding_server
from tests.support.fake_embedder import FakeEmbedder
from tests.support.waiting import eventually


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with run_embedding_server(COMPATIBLE, FakeEmbedder()) as server:
        yield server


def embedder(daemon: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.call("status")["embedder"]
    return found


def fill(machine: Machine) -> None:
    for number in range(12):
        machine.write(f"memory/{number}.md", f"# Note {number}\n\nThe keeper of lighthouse{number} sleeps.\n")


def test_daemon_goes_over_to_a_service_and_back_without_a_gap(machine: Machine, server: EmbeddingServer) -> None:
    fill(machine)
    (machine.folder / "key").write_text(KEY)
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(f'[embedder]\nprovider = "local"\napi_key_file = "{machine.folder / "key"}"\n')
    with machine.daemon() as daemon:
        daemon.settle()
        local = embedder(daemon)
        assert (local["provider"], local["sends_to"], local["hold"]) == ("local", None, None)
        done = machine.run("model", "use", "openai-compatible:some-model", "--base-url", server.url)
        assert done.returncode == 0, done.stderr
        assert "embeds the notes anew" in done.stderr
        answers = []

        def switched() -> bool:
            answers.append(daemon.call("search", query="who sleeps in lighthouse7"))
            return bool(embedder(daemon)["model"] == "openai-compatible:some-model")

        eventually(switched, what="the service is searched by")
        assert [answer["degraded"] for answer in answers] == [None] * len(answers)
        daemon.settle()

        status = machine.run("status")
        assert status.returncode == 0, status.stdout
        assert "openai-compatible (as configured) · on this machine" in status.stdout
        assert machine.run("verify").returncode == 0
        assert "openai-compatible: some-model, as configured" in machine.run("doctor").stdout
        (used,) = [each for each in machine.json("model", "list")["services"] if each["used"]]
        assert (used["name"], used["base_url"]) == ("openai-compatible", server.url)
        assert used["key"] == str(machine.folder / "key")
        assert machine.run("reload").returncode == 0
        shown = [machine.run(*words) for words in (("config", "show"), ("model", "list"), ("status", "--json"))]
        assert all(KEY not in each.stdout + each.stderr for each in shown)

        server.always = None
        machine.write("memory/new.md", "A narwhal was seen at the pier.\n")
        eventually(lambda: any("narwhal" in text for text in server.texts), what="what is new is sent")
        daemon.settle()

        back = json.loads(machine.run("model", "rollback", "--json").stdout)
        assert back["fingerprint"] == local["fingerprint"]
        assert embedder(daemon)["provider"] == "local"
        assert 'provider = "local"' in machine.config_file.read_text()
        assert server.url not in machine.config_file.read_text()
        assert KEY not in daemon.log()
        daemon.settle()


def test_service_is_up_again_after_a_restart_without_being_paid_twice(
    machine: Machine, server: EmbeddingServer
) -> None:
    fill(machine)
    server.key = ""
    machine.env = {
        "MEMORYD_EMBEDDER__PROVIDER": "openai-compatible",
        "MEMORYD_EMBEDDER__MODEL": "some-model",
        "MEMORYD_EMBEDDER__BASE_URL": server.url,
    }
    with machine.daemon() as daemon:
        daemon.settle()
    server.texts.clear()
    with machine.daemon() as daemon:
        daemon.settle()
        assert daemon.call("search", query="lighthouse7")["degraded"] is None
        assert not [text for text in server.texts if "keeper" in text]


def test_by_words_alone_on_purpose_is_no_fault(machine: Machine) -> None:
    fill(machine)
    machine.env = {"MEMORYD_EMBEDDER__PROVIDER": "none"}
    with machine.daemon() as daemon:
        daemon.settle()
        answer = daemon.call("search", query="lighthouse7")
        assert answer["results"][0]["path"] == "memory/7.md"
        assert answer["degraded"] is None
        status = daemon.call("status")
        assert status["health"] == {"state": "ok", "reasons": []}
        assert (status["embedder"]["state"], status["embedder"]["provider"]) == ("off", "none")
        assert status["queue"]["depth"] == 0
        assert status["workspaces"][0]["pending"] == 0
        machine.write("memory/new.md", "A narwhal was seen at the pier.\n")
        eventually(lambda: daemon.call("search", query="narwhal")["results"], what="what is new is found")
        daemon.settle()
        assert daemon.call("status")["queue"]["depth"] == 0
        assert machine.run("index").returncode == 0
        assert machine.run("verify").returncode == 0
        printed = machine.run("status")
        assert printed.returncode == 0
        assert "none · off" in printed.stdout
        assert "by words alone, as configured" in machine.run("doctor").stdout
        assert "libllama" not in Path(f"/proc/{daemon.process.pid}/maps").read_text(), "no model is loaded"

        done = machine.run("model", "use", "all-minilm-l6-v2")
        assert done.returncode == 0, done.stderr
        eventually(lambda: embedder(daemon)["state"] == "ready", what="the model is there")
        daemon.settle()
        (workspace,) = daemon.call("status")["workspaces"]
        assert workspace["vectors"] == workspace["passages"] > 0
        assert machine.run("model", "use", "none").returncode == 0
        eventually(lambda: embedder(daemon)["state"] == "off", what="it is off")
        assert daemon.call("search", query="narwhal")["degraded"] is None
        daemon.settle()
        assert daemon.call("status")["health"]["state"] == "ok"


def test_model_command_says_what_is_missing(machine: Machine) -> None:
    missing = machine.run("model", "use", "openai")
    assert missing.returncode != 0
    assert "no key for openai" in missing.stderr
    assert "OPENAI_API_KEY" in missing.stderr
    nowhere = machine.run("model", "use", "openai-compatible:x")
    assert "--base-url" in nowhere.stderr
    unnamed = machine.run("model", "use", "openai-compatible")
    assert "openai-compatible:MODEL" in unnamed.stderr
    local = machine.run("model", "use", "all-minilm-l6-v2", "--base-url", "http://x/v1")
    assert "asked nowhere" in local.stderr
    assert "auto: the local model; where that cannot be had, nobody" in machine.run("model", "list").stderr
    given = machine.run("model", "list", MEMORYD_VOYAGE_API_KEY=KEY)
    assert "voyage, for memoryd was given a key for it" in given.stderr
    assert "the variable MEMORYD_VOYAGE_API_KEY" in given.stdout
    assert KEY not in given.stdout + given.stderr
