"""Settings changed from the command line while the daemon runs."""

from __future__ import annotations

import json

import pytest

from memoryd.daemon.config import Weights
from tests.support.daemon import Machine

CONFIG = """\
# Kept in git
[search]
limit = 4  # a screenful
"""


@pytest.fixture
def notes(machine: Machine) -> Machine:
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(CONFIG)
    machine.write("memory/pets.md", "Our puppy sleeps in the kitchen.\n")
    machine.write("memory/boats.md", "The ferry leaves at nine.\n")
    return machine


def test_search_is_changed_for_one_query_and_for_all(notes: Machine) -> None:
    query = ("search", "where does the young dog rest", "--explain")

    def legs(*words: str) -> set[str]:
        return set(notes.json(*query, *words)["candidates"])

    with notes.daemon() as daemon:
        daemon.settle()
        assert "vector" in legs()
        assert legs("--set", "weights.vector=0", "--set", "search.fusion=rrf") == {"words", "trigram"}
        assert "vector" in legs()

        done = notes.run("config", "set", "weights.vector=0", "search.mmr=on")
        assert done.returncode == 0
        assert done.stdout == (
            f"search.weights.vector = 0.0  # from: live, configured: {Weights().vector}\n"
            "search.mmr.enabled = true  # from: live, configured: false\n"
        )
        assert "2 settings not as configured" in done.stderr
        assert legs() == {"words", "trigram"}
        assert f"search.weights.vector = 0.0 (configured: {Weights().vector})" in notes.run("status").stdout

        assert notes.run("config", "get", "weights").stdout == (
            f"search.weights.words = {Weights().words}  # from: default\n"
            f"search.weights.trigram = {Weights().trigram}  # from: default\n"
            f"search.weights.vector = 0.0  # from: live, configured: {Weights().vector}\n"
        )
        assert notes.run("config", "get", "search.limit").stdout == "search.limit = 4  # from: file\n"
        assert json.loads(notes.run("config", "get", "limit", "--json").stdout) == {
            "search.limit": {"value": 4, "origin": "file"}
        }
        assert notes.json("config", "get") == daemon.call("settings.get")

        back = notes.run("config", "set", "--reset")
        assert back.returncode == 0
        assert "as configured" in back.stderr
        assert "vector" in legs()
        assert "live settings" not in notes.run("status").stdout


def test_persisted_settings_outlive_the_daemon_and_comments_outlive_them(notes: Machine) -> None:
    with notes.daemon():
        done = notes.run("config", "set", "limit=1", "fusion=rrf", "--persist")
        assert done.returncode == 0
        assert str(notes.config_file) in done.stderr
    assert notes.config_file.read_text() == '# Kept in git\n[search]\nfusion = "rrf"\nlimit = 1  # a screenful\n'
    with notes.daemon():
        assert notes.run("config", "get", "fusion").stdout == 'search.fusion = "rrf"  # from: file\n'
        assert notes.json("config", "get")["changed"] == {}


def test_what_cannot_be_changed_is_told_with_the_remedy(notes: Machine) -> None:
    with notes.daemon():
        for words, told in (
            (("search", "puppy", "--set", "rrf_k=0"), "settings.rrf_k: found 0; allowed: a whole number, 1 to 1000"),
            (("search", "puppy", "--set", "rrfk=1"), "did you mean search.rrf_k?"),
            (("search", "puppy", "--set", "rrf_k"), "no value"),
            (("config", "set", "fusion=best"), "allowed: weighted or rrf"),
            (("config", "set", "index.chunk_tokens=300"), "restart memoryd"),
            (("config", "set", "hyde.max_tokens=99"), "restart memoryd"),
            (("config", "set"), "nothing to change"),
            (("config", "get", "index.chunk_tokens"), "read when memoryd starts"),
            (("config", "get", "fussion"), "did you mean search.fusion?"),
        ):
            done = notes.run(*words)
            assert done.returncode == 2, words
            assert told in done.stderr
            assert "Traceback" not in done.stderr
        notes.config_file.unlink()
        gone = notes.run("config", "set", "limit=2", "--persist")
        assert (gone.returncode, "no longer there" in gone.stderr) == (2, True)
        assert notes.run("config", "get", "limit").stdout == "search.limit = 4  # from: file\n"
    assert notes.run("config", "get").returncode == 3
