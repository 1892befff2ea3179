"""Settings changed over a real socket: the next query is answered by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.client import Client
from memoryd.daemon.config import Weights
from memoryd.daemon.config_file import load_config
from memoryd.daemon.methods import Methods
from memoryd.store.errors import ConfigInvalid, InvalidParams
from tests.support.engine import Memory

CONFIG = """\
# What I found out about my notes
[search]
limit = 3  # more I do not read

# Which legs count
[search.weights]
trigram = 0.25
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def memory(tmp_path: Path, file: Path) -> Memory:
    memory = Memory(tmp_path)
    for number in range(5):
        memory.write(f"memory/heron-{number}.md", f"The heron number {number} stood on the roof.\n")
    loaded = load_config(file, {"HOME": str(tmp_path)}, tmp_path)
    memory.configure(search=loaded.search, file=loaded.file, origin=loaded.origin)
    return memory


@pytest.fixture
def client(memory: Memory, running_server: Any, path: Path) -> Iterator[Client]:
    with memory.running() as engine:
        memory.settle()
        with running_server(path, Methods(engine, {}).table()), Client(path) as client:
            yield client


def ask(client: Client, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.call("search", {"query": "heron on the roof", "explain": True, **params})
    return answer


def legs(answer: dict[str, Any]) -> set[str]:
    return set(answer["candidates"])


def test_one_query_is_answered_by_its_own_settings(client: Client) -> None:
    plain = ask(client)
    assert legs(plain) == {"words", "trigram", "vector"}
    words = ask(client, settings={"weights": {"vector": 0, "trigram": 0}, "limit": 2, "fusion": "rrf"})
    assert legs(words) == {"words"}
    assert len(words["results"]) == 2
    assert len(ask(client, settings={"limit": 2}, limit=4)["results"]) == 4  # what the query says outright wins
    few: dict[str, Any] = {"candidates": 1, "weights": {"words": 1, "vector": 0, "trigram": 0}}
    assert ask(client, settings=few, limit=1)["candidates"] == {"words": 1}
    assert ask(client, settings=few, limit=2)["candidates"] == {"words": 2}  # as many as are asked for
    again = ask(client)
    assert (again["results"], again["candidates"]) == (plain["results"], plain["candidates"])


def test_settings_change_the_next_query_and_reset_goes_back(client: Client) -> None:
    before = ask(client)
    described = client.call("settings.set", {"settings": {"weights": {"vector": 0}, "limit": 5}})
    assert described == client.call("settings.get")
    assert described["origin"]["weights.vector"] == "live"
    assert described["origin"]["weights.trigram"] == "file"
    assert described["origin"]["weights.words"] == "default"
    changed = ask(client)
    assert legs(changed) == {"words", "trigram"}
    assert len(changed["results"]) == 5
    assert legs(ask(client, settings={"weights": {"vector": 1}})) == {"words", "trigram", "vector"}
    assert client.call("status")["live_settings"] == {
        "limit": {"live": 5, "configured": 3},
        "weights.vector": {"live": 0.0, "configured": Weights().vector},
    }
    assert client.call("settings.set", {"reset": True})["changed"] == {}
    after = ask(client)
    assert (after["results"], after["candidates"]) == (before["results"], before["candidates"])
    assert client.call("status")["live_settings"] == {}


def test_persisted_settings_are_in_the_file_with_its_comments(client: Client, file: Path) -> None:
    client.call("settings.set", {"settings": {"limit": 2, "weights": {"vector": 0}}, "persist": True})
    assert file.read_text() == (
        CONFIG.replace("limit = 3 ", "limit = 2 ").replace("[search.weights]\n", "[search.weights]\nvector = 0.0\n")
    )
    assert len(ask(client)["results"]) == 2
    client.call("settings.set", {"reset": True})
    assert len(ask(client)["results"]) == 2


def test_what_cannot_be_persisted_is_not_in_force_either(client: Client, file: Path) -> None:
    file.unlink()
    with pytest.raises(ConfigInvalid, match="no longer there"):
        client.call("settings.set", {"settings": {"limit": 1}, "persist": True})
    assert len(ask(client)["results"]) == 3


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"fusion": "best"}, 'settings.fusion: found "best"; allowed: weighted or rrf'),
        ({"weights": {"vector": 101}}, "settings.weights.vector: found 101; allowed: a number, 0 to 100"),
        ({"weights": {"words": 0, "trigram": 0, "vector": 0}}, "one above 0"),
        ({"chunk_tokens": 300}, "settings.chunk_tokens: unknown"),
        ([1], "settings must be an object"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(client: Client, settings: object, told: str) -> None:
    before = client.call("settings.get")
    for method, more in (("search", {"query": "heron"}), ("settings.set", {})):
        with pytest.raises(InvalidParams) as caught:
            client.call(method, {"settings": settings, **more})
        assert told in caught.value.message
        assert caught.value.hint
    assert client.call("settings.get") == before


@pytest.mark.parametrize("params", [{}, {"settings": {}}, {"persist": True}, {"reset": True, "persist": True}])
def test_setting_nothing_is_refused(client: Client, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match="nothing to change"):
        client.call("settings.set", params)
