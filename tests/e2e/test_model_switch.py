"""Another model under a running daemon, with real models: no gap, the way back, and the disk given back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, Machine
from tests.support.other_models import BGE_SMALL, provide
from tests.support.waiting import eventually


@pytest.fixture
def other_model(tmp_path: Path, other_models: Path) -> Path:
    """Another model altogether: bge-small, twice as deep, with another pooling."""
    other = tmp_path / "other.gguf"
    shutil.copy(provide(BGE_SMALL, other_models), other)
    return other


def fill(machine: Machine) -> None:
    for number in range(40):
        machine.write(f"memory/{number}.md", f"# Note {number}\n\nThe keeper of lighthouse{number} sleeps.\n")


def embedder(daemon: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.call("status")["embedder"]
    return found


def test_switch_rollback_and_prune_under_a_running_daemon(machine: Machine, other_model: Path) -> None:
    fill(machine)
    with machine.daemon() as daemon:
        daemon.settle()
        first = embedder(daemon)["fingerprint"]
        used = json.loads(machine.run("model", "use", str(other_model), "--json").stdout)
        assert used["switching"] is True
        answers = []

        def switched() -> bool:
            answers.append(daemon.call("search", query="who sleeps in the lighthouse7"))
            return bool(embedder(daemon)["fingerprint"] != first)

        eventually(switched, what="the flip")
        assert [answer["degraded"] for answer in answers] == [None] * len(answers)
        assert {answer["results"][0]["path"] for answer in answers} == {"memory/7.md"}
        assert "other.gguf" in machine.config_file.read_text()
        assert "rollback" in machine.run("status").stdout
        second = embedder(daemon)["fingerprint"]

        back = json.loads(machine.run("model", "rollback", "--json").stdout)
        assert back["fingerprint"] == first
        assert embedder(daemon)["fingerprint"] == first
        assert "other.gguf" not in machine.config_file.read_text()
        assert daemon.call("search", query="lighthouse7")["degraded"] is None

        pruned = json.loads(machine.run("model", "prune", "--json").stdout)
        assert [each["fingerprint"] for each in pruned["removed"]] == [second]
        assert pruned["bytes"] > 0
        assert "nothing to give back" in machine.run("model", "prune").stderr
        assert machine.run("model", "rollback").returncode != 0
        daemon.settle()
    with machine.daemon() as daemon:
        daemon.settle()
        assert embedder(daemon)["fingerprint"] == first


def test_reload_of_a_configuration_with_another_model_begins_the_switch(machine: Machine, other_model: Path) -> None:
    machine.write("memory/a.md", "The keeper of the lighthouse sleeps.\n")
    machine.config_file.parent.mkdir(parents=True, exist_ok=True)
    machine.config_file.write_text("")
    with machine.daemon("--config", str(machine.config_file)) as daemon:
        daemon.settle()
        first = embedder(daemon)["fingerprint"]
        machine.config_file.write_text(f'[embedder]\nmodel = "{other_model}"\n')
        done = machine.run("reload")
        assert (done.returncode, "changed  embedder.model" in done.stderr) == (0, True), done.stderr
        eventually(lambda: embedder(daemon)["fingerprint"] not in (None, first), what="the flip")
        assert daemon.call("search", query="who sleeps")["degraded"] is None
        assert daemon.call("reload") == {"changed": [], "needs_restart": []}


def test_kill_in_the_middle_of_a_switch_is_resumed(machine: Machine, other_model: Path) -> None:
    fill(machine)
    daemon = machine.start()
    try:
        daemon.wait_until_it_answers()
        daemon.settle()
        first = embedder(daemon)["fingerprint"]
        machine.run("model", "use", str(other_model))
        eventually(
            lambda: (embedder(daemon)["switching"] or {}).get("done") or embedder(daemon)["fingerprint"] != first
        )
    finally:
        daemon.kill()
    with machine.daemon() as again:
        eventually(lambda: embedder(again)["fingerprint"] not in (None, first), what="the switch is finished")
        again.settle()
        (workspace,) = again.call("status")["workspaces"]
        assert workspace["vectors"] == workspace["passages"]
        computed = sum(event.get("computed", 0) for event in daemon.events("job_done"))  # of both: they share a log
        assert computed <= 2 * workspace["passages"] + 4  # the batch in hand at the kill, at most


def test_rollback_and_prune_without_a_daemon(machine: Machine, other_model: Path) -> None:
    fill(machine)
    with machine.daemon() as daemon:
        daemon.settle()
        first = embedder(daemon)["fingerprint"]
    machine.run("model", "use", str(other_model))
    with machine.daemon() as daemon:
        eventually(lambda: embedder(daemon)["fingerprint"] not in (None, first))
        daemon.settle()
        second = embedder(daemon)["fingerprint"]
    back = json.loads(machine.run("model", "rollback", "--json").stdout)
    assert back["fingerprint"] == first
    with machine.daemon() as daemon:
        daemon.settle()
        assert embedder(daemon)["fingerprint"] == first
    pruned = json.loads(machine.run("model", "prune", "--json").stdout)
    assert [each["fingerprint"] for each in pruned["removed"]] == [second]


def test_model_file_spoilt_while_it_runs_is_noticed_at_the_next_load(machine: Machine, default_model: Path) -> None:
    """What is loaded goes on; a spoilt file would be another model, and everything embedded anew with it."""
    models = machine.folder / "cache/memoryd/models"
    shutil.copytree(default_model.parent, models / default_model.parent.name)
    machine.env = {"MEMORYD_PATHS__CACHE": str(models.parent), "MEMORYD_EMBEDDER__AUTO_INSTALL": "false"}
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    file = models / default_model.parent.name / default_model.name
    with machine.daemon() as daemon:
        daemon.settle()
        first = embedder(daemon)["fingerprint"]
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        beside = file.with_suffix(".beside")
        beside.write_bytes(data)
        beside.replace(file)
        assert daemon.call("search", query="who watches the sea")["degraded"] is None
    with machine.daemon() as daemon:
        eventually(lambda: "embedder_failed" in daemon.health())
        assert "not the one that was installed" in daemon.health()["embedder_failed"]["message"]
        assert "model install" in daemon.health()["embedder_failed"]["hint"]
        assert daemon.found("lighthouse") == ["memory/a.md"]
        shutil.copy(default_model, file)
        daemon.call("index", force=True)
        eventually(lambda: embedder(daemon)["fingerprint"] == first, what="it comes back")
    file.unlink()
    with machine.daemon() as daemon:
        eventually(lambda: "embedder_failed" in daemon.health())
        assert "not installed" in daemon.health()["embedder_failed"]["message"]
