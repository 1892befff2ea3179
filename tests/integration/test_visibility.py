"""Scope, superseding and dates on real files, real SQLite and real LanceDB: what is not to be seen is not found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import Search, Weights, Workspace
from memoryd.store.errors import InvalidParams
from memoryd.store.protocols import VectorIndex, Vectors
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.vectors import LanceVectors
from tests.support.documents import make_document
from tests.support.engine import Gate, Memory
from tests.support.fake_embedder import FakeEmbedder
from tests.support.ledger import Ledger, open_ledger
from tests.support.waiting import eventually

SECRET = "the safe opens with seven turns to the left"
NOTES = {
    "MEMORY.md": "# Memory\n\nThe office safe stands in the harbour house.\n",
    "memory/ana.md": "---\nscope: user:ana\n---\nAna keeps her passport in the safe.\n",
    "memory/bob.md": f"---\nscope: user:bob\n---\nBob says {SECRET}.\n",
    "memory/agents/coder/tools.md": "The coder never touches the safe.\n",
    "memory/odd.md": "---\nscope: everybody but bob\n---\nA surprise for Bob lies in the safe.\n",
}
RULES = ("agent:* = memory/agents/*/**",)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path)
    memory.configure(workspaces=(Workspace(memory.root, "notes", scopes=RULES),))
    for path, text in NOTES.items():
        memory.write(path, text)
    return memory


def paths(answer: dict[str, Any]) -> set[str]:
    return {hit["path"] for hit in answer["results"]}


# -- scope ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "own"),
    [
        ("user:ana", {"memory/ana.md"}),
        ("User: ana", {"memory/ana.md"}),
        ("user:bob", {"memory/bob.md"}),
        ("agent:coder", {"memory/agents/coder/tools.md"}),
        ("session:1", set()),
        ("global", set()),
    ],
)
def test_scope_finds_what_is_global_and_its_own(memory: Memory, scope: str, own: set[str]) -> None:
    with memory.running():
        memory.settle()
        assert paths(memory.search("safe", scope=scope)) == {"MEMORY.md", *own}


def test_without_a_scope_everything_is_found_and_says_whose_it_is(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        scopes = {hit["path"]: hit["scope"] for hit in memory.search("safe")["results"]}
        assert scopes == {
            "MEMORY.md": "global",
            "memory/ana.md": "user:ana",
            "memory/bob.md": "user:bob",
            "memory/agents/coder/tools.md": "agent:coder",
            "memory/odd.md": "unknown",
        }
        (remark,) = memory.status()["workspaces"][0]["skipped"]
        assert (remark["path"], remark["indexed"]) == ("memory/odd.md", True)
        assert "everybody but bob" in remark["reason"]


def test_nothing_in_an_answer_tells_of_another_scope(memory: Memory) -> None:
    """The query is the secret itself, so that every leg would bring it first."""
    memory.write("memory/new.md", "---\nscope: user:bob\nsupersedes: /MEMORY.md\n---\nThe safe was moved.\n")
    with memory.running():
        memory.settle()
        assert memory.search(SECRET, limit=1)["results"][0]["path"] == "memory/bob.md"
        for include in (False, True):
            answer = memory.search(SECRET, scope="user:ana", limit=100, explain=True, include_superseded=include)
            assert paths(answer) == {"MEMORY.md", "memory/ana.md"}
            told = json.dumps({**answer, "query": ""})
            assert not any(word in told for word in ("bob", "seven turns", "odd.md", "new.md"))


def test_pending_list_does_not_name_what_may_be_anothers(tmp_path: Path) -> None:
    gate = Gate()
    memory = Memory(tmp_path, gate)
    memory.configure(search=Search(weights=Weights(vector=0)))  # a query by meaning would wait at the gate
    memory.write("memory/ana.md", "---\nscope: user:ana\n---\nHer words.\n")
    memory.write("memory/bob.md", "---\nscope: user:bob\n---\nHis words.\n")
    with memory.running() as engine:
        eventually(lambda: engine.documents.totals("notes", None).documents == 2, what="both are read")
        assert {entry["path"] for entry in memory.search("words")["pending"]} == {"memory/ana.md", "memory/bob.md"}
        answer = memory.search("words", scope="user:ana")
        assert [entry["path"] for entry in answer["pending"]] == ["memory/ana.md"]
        assert answer["pending_count"] == 1
        assert memory.search("words", scope="global")["pending_count"] == 0
        gate.open()


def test_note_that_changes_hands_is_found_by_its_new_owner_alone(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        memory.write("memory/bob.md", "---\nscope: user:ana\n---\nThe safe is hers.\n")
        memory.look()
        assert "memory/bob.md" in paths(memory.search("safe", scope="user:ana"))
        assert "memory/bob.md" not in paths(memory.search("safe", scope="user:bob"))


# -- rules that change ----------------------------------------------------------------------------------------


def test_other_rules_are_applied_to_what_is_indexed_and_embed_nothing(memory: Memory) -> None:
    memory.index()
    rules = ("user:zoe = memory/agents/**",)
    memory.configure(workspaces=(Workspace(memory.root, "notes", scopes=rules),))
    assert memory.embedded_by(memory.index) == []
    with memory.running():
        memory.settle()
        assert "memory/agents/coder/tools.md" in paths(memory.search("safe", scope="user:zoe"))
        assert "memory/agents/coder/tools.md" not in paths(memory.search("safe", scope="agent:coder"))


def test_scope_told_by_rules_that_are_gone_is_not_trusted_until_the_file_is_read_again(memory: Memory) -> None:
    memory.index()
    memory.configure(workspaces=(Workspace(memory.root, "notes", scopes=("user:zoe = memory/**", *RULES)),))
    away = memory.root.rename(memory.root.with_name("away"))
    with memory.running():
        assert paths(memory.search("safe", scope="agent:coder")) == set()
        assert paths(memory.search("safe")) == set(NOTES)
    away.rename(memory.root)
    with memory.running():
        memory.settle()
        assert paths(memory.search("safe", scope="agent:coder")) == {"MEMORY.md"}
        assert "memory/agents/coder/tools.md" in paths(memory.search("safe", scope="user:zoe"))


def test_ledger_from_before_scopes_is_read_again(memory: Memory) -> None:
    memory.index()
    with memory.running() as engine, engine.database.write() as sql:  # as the migration finds and leaves it
        sql.execute("UPDATE documents SET scope = 'unknown'")
        sql.execute("DELETE FROM superseding")
        sql.execute("DELETE FROM meta WHERE key LIKE 'scopes:%'")
        sql.execute("UPDATE meta SET value = '1 IndexSettings() ()' WHERE key LIKE 'reading:%'")
    with memory.running():
        memory.settle()
        assert paths(memory.search("safe", scope="user:ana")) == {"MEMORY.md", "memory/ana.md"}


# -- superseded -----------------------------------------------------------------------------------------------


def test_superseded_note_is_found_only_if_it_is_asked_for_and_is_marked(memory: Memory) -> None:
    memory.write("memory/plan.md", "We meet at the lighthouse.\n")
    memory.write("memory/2026/plan.md", "---\nsupersedes: [[../plan]]\n---\nWe meet at the station.\n")
    with memory.running():
        memory.settle()
        assert memory.found("we meet") == ["memory/2026/plan.md"]
        marked = {hit["path"]: hit for hit in memory.search("we meet", include_superseded=True)["results"]}
        assert (marked["memory/plan.md"]["superseded"], marked["memory/plan.md"]["superseded_by"]) == (
            True,
            "memory/2026/plan.md",
        )
        assert "superseded" not in marked["memory/2026/plan.md"]

        (memory.root / "memory/2026/plan.md").unlink()
        memory.look()
        assert memory.found("we meet") == ["memory/plan.md"]


def test_superseded_by_a_missing_note_still_counts(memory: Memory) -> None:
    memory.write("memory/plan.md", "---\nsuperseded_by: nowhere.md\n---\nWe meet at the lighthouse.\n")
    with memory.running():
        memory.settle()
        assert memory.found("we meet") == []
        (hit,) = [hit for hit in memory.search("lighthouse", include_superseded=True)["results"] if "superseded" in hit]
        assert (hit["path"], hit["superseded_by"]) == ("memory/plan.md", None)


# -- exclude, dates -------------------------------------------------------------------------------------------


def test_hit_is_excluded_by_its_id_and_the_next_takes_its_place(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        first, second = memory.search("harbour safe", limit=2)["results"]
        (next_best,) = memory.search("harbour safe", limit=1, exclude=[first["id"]])["results"]
        assert next_best["id"] == second["id"]
        assert paths(memory.search("safe", exclude=["memory/**"])) == {"MEMORY.md"}
        assert "MEMORY.md" not in paths(memory.search("safe", exclude="MEMORY.md"))


def test_as_of_is_as_if_it_were_that_day(memory: Memory) -> None:
    memory.write("memory/2026-10-01.md", "The lighthouse is painted red.\n")
    memory.write("memory/2026-10-20.md", "---\nsupersedes: 2026-10-01\n---\nThe lighthouse is painted green.\n")
    with memory.running():
        memory.settle()
        assert memory.found("lighthouse") == ["memory/2026-10-20.md"]
        then = memory.search("lighthouse painted", as_of="2026-10-11", explain=True)["results"]
        (hit,) = [hit for hit in then if hit["date"]]
        assert (hit["path"], hit["explain"]["age_days"]) == ("memory/2026-10-01.md", 10)
        assert "MEMORY.md" in paths(memory.search("safe", as_of="2000-01-01"))
        assert paths(memory.search("lighthouse safe", after="2026-10-02")) == {"memory/2026-10-20.md"}
        assert paths(memory.search("lighthouse safe", before="2026-10-02", include_superseded=True)) == {
            "memory/2026-10-01.md"
        }


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"scope": "bob"}, "user:<id>"),
        ({"scope": "user:*"}, "user:<id>"),
        ({"scope": "unknown"}, "user:<id>"),
        ({"as_of": "yesterday"}, "2026-11-15"),
        ({"after": "2026-11-31"}, "2026-11-15"),
        ({"before": 20261115}, "2026-11-15"),
        ({"after": "2026-11-02", "before": "2026-11-01"}, "Swap"),
    ],
)
def test_filter_that_makes_no_sense_is_refused_with_the_remedy(
    memory: Memory, params: dict[str, Any], told: str
) -> None:
    with memory.running(), pytest.raises(InvalidParams) as caught:
        memory.search("safe", **params)
    assert told in f"{caught.value.message} {caught.value.hint}"


# -- beyond the mirror ----------------------------------------------------------------------------------------


class _Lance:
    """The vector side, searched in LanceDB itself."""

    fingerprint: str | None = None  # as the ledger says

    def __init__(self, folder: Path) -> None:
        self.embedder = FakeEmbedder()
        identity = self.embedder.identity
        self.vectors = LanceVectors(folder, identity.fingerprint, identity.dimension, mirror_rows=0)

    def embed_query(self, text: str) -> Vectors:
        return self.embedder.embed_query(text)

    def knows_query(self, _text: str) -> bool:
        return False

    def index(self) -> VectorIndex:
        return self.vectors


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db") as opened:
        yield opened


def test_scope_is_kept_and_never_starves_in_lancedb_itself(ledger: Ledger, tmp_path: Path) -> None:
    lance = _Lance(tmp_path / "vectors")
    ledger.generations.activate(lance.embedder.identity, 0.0)
    hidden = [f"the safe opens with {number} turns\n" for number in range(60)]
    for number, text in enumerate(hidden):
        ledger.put(replace(make_document(f"memory/bob/{number}.md", text), scope="user:bob"))
    ledger.put(replace(make_document("memory/ana.md", "nothing that opens\n"), scope="user:ana"))
    texts = [*hidden, "nothing that opens\n"]
    ledger.embed(lance.vectors, dict(zip(texts, lance.embedder.embed_documents(texts), strict=True)))
    weights = {"words": 0.0, "trigram": 0.0, "vector": 1.0}
    settings = replace(SearchSettings(candidates=5), weights=weights)
    query = SearchQuery("the safe opens with 7 turns", date(2026, 11, 15), scope="user:ana")
    answer = search(query, settings, ledger.database, lance, lambda: [])
    assert [hit.path for hit in answer.hits] == ["memory/ana.md"]
    everything = search(replace(query, scope=None), settings, ledger.database, lance, lambda: [])
    assert everything.candidates == {"vector": 5}
    assert {hit.path for hit in everything.hits} <= {f"memory/bob/{number}.md" for number in range(60)}
