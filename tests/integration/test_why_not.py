"""Why a passage is not among the hits, asked of an engine: from the disk to the ranking."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Embedder, Index, Search, Weights, Workspace
from memoryd.daemon.methods import Methods
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from memoryd.store.errors import EmbedderUnavailable, InvalidParams, PathRefused
from memoryd.store.job_rows import add_job
from memoryd.store.protocols import Vectors
from tests.support.engine import Memory
from tests.support.fake_embedder import FakeEmbedder
from tests.support.waiting import eventually

KEYS = {
    "query", "passage", "verdict", "explanation", "place", "stages", "legs", "words", "remedies", "hint", "took_ms",
}  # fmt: skip
STAGES = ["indexed", "filters", "candidates", "decay", "min_score", "duplicates", "mmr", "limit"]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path)
    for number in range(1, 10):
        memory.write(f"memory/{number}.md", f"The boat {'and more ' * number}\n")
    return memory


def why_not(memory: Memory, query: str, passage: str, **params: Any) -> dict[str, Any]:
    told = Methods(memory.live, {}).searching.why_not({"query": query, "passage": passage, **params})
    assert told.keys() == KEYS
    assert [stage["stage"] for stage in told["stages"]] == STAGES
    json.dumps(told)
    return told


# -- the shape ------------------------------------------------------------------------------------------------------


def test_answer_names_the_passage_the_way_and_the_remedy(memory: Memory) -> None:
    memory.configure(search=Search(limit=2, weights=Weights(vector=0)))
    with memory.running():
        memory.settle()
        shown = [hit["path"] for hit in memory.search("boat", limit=9)["results"]]
        told = why_not(memory, "boat", f"{shown[4]}:1")
        assert (told["verdict"], told["place"], told["hint"]) == ("limit", 5, None)
        assert told["passage"].keys() == {"workspace", "path", "line", "start_line", "end_line", "id"}
        assert (told["passage"]["workspace"], told["passage"]["line"], told["passage"]["start_line"]) == ("notes", 1, 1)
        assert [stage["passed"] for stage in told["stages"]] == [True] * 7 + [False]
        assert told["legs"]["words"].keys() == {"rank", "score", "share"}
        assert told["words"] == {"has": ["boat"], "lacks": [], "ignored": []}
        assert told["remedies"] == [
            {"setting": "limit", "value": 5, "with": [], "command": "memoryd search boat --limit 5", "place": 5}
        ]
        for same in ({"passage": f"{shown[4]}#L1"}, {"passage": f"{shown[4]}#L1-L1"}, {"passage": shown[4], "line": 1}):
            again = why_not(memory, "boat", **same)
            assert {**again, "took_ms": 0} == {**told, "took_ms": 0}


def test_parameters_of_a_search_and_settings_of_its_own_count(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        told = why_not(memory, "boat", "memory/3.md:1", path="skills/**", settings={"decay": {"strength": 0}})
        assert told["verdict"] == "filtered"
        assert told["remedies"][0]["value"] == ["skills/**", "memory/3.md"]
        assert told["remedies"][0]["command"] == (
            "memoryd search boat --path 'skills/**' --path memory/3.md --set decay.strength=0"
        )


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"passage": "memory/1.md"}, InvalidParams),
        ({"passage": "memory/1.md:0"}, InvalidParams),
        ({"passage": "../outside.md:1"}, PathRefused),
        ({"passage": "memory/1.md:1", "workspace": "nowhere"}, InvalidParams),
        ({"passage": "memory/1.md:1", "scope": "ana"}, InvalidParams),
        ({}, InvalidParams),
    ],
)
def test_question_that_makes_no_sense_is_refused(
    memory: Memory, params: dict[str, Any], error: type[Exception]
) -> None:
    with memory.running(), pytest.raises(error):
        Methods(memory.live, {}).searching.why_not({"query": "boat", **params})


# -- not indexed ----------------------------------------------------------------------------------------------------


def test_file_that_is_not_indexed_is_told_with_the_reason(memory: Memory) -> None:
    memory.configure(index=Index(max_file_bytes=1024))
    memory.write("memory/huge.md", "boat " * 1000)
    memory.write("memory/binary.md", "\0\1\2" * 200)
    memory.write("memory/node_modules/x.md", "boat\n")
    memory.write("docs/x.md", "boat\n")
    (memory.root / "memory/link.md").symlink_to("/etc/hostname")
    with memory.running():
        memory.settle()
        for path, verdict, told in (
            ("memory/huge.md", "skipped", "index.max_file_bytes"),
            ("memory/binary.md", "skipped", "not text"),
            ("memory/link.md", "skipped", "outside of the workspace"),
            ("memory/node_modules/x.md", "ignored", "**/node_modules/**"),
            ("docs/x.md", "not_included", "memory/**/*.md"),
            ("memory/11.md", "no_such_file", "There is no memory/11.md"),
            ("memory", "not_included", "memory/**/*.md"),
        ):
            answer = why_not(memory, "boat", f"{path}:1")
            assert (answer["verdict"], answer["remedies"], answer["place"]) == (verdict, [], None), path
            assert told in answer["explanation"]
            assert answer["stages"][0]["passed"] is False
        assert "memory/1.md" in why_not(memory, "boat", "memory/11.md:1")["hint"]
        assert "memory/1.md" not in why_not(memory, "boat", "memory/11.md:1", scope="user:ana")["hint"]
        assert why_not(memory, "boat", "memory/1.md:7")["verdict"] == "no_such_line"


def test_file_whose_job_was_parked_is_told_with_the_reason(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        with engine.database.write() as sql:  # as the worker leaves it after a last failure; root may read every file
            add_job(sql, "index", "notes", "memory/closed.md", 0)
            sql.execute(
                "UPDATE jobs SET state = 'parked', attempts = 5, reason = 'Permission denied', hint = 'Let it be read'"
            )
        answer = why_not(memory, "boat", "memory/closed.md:1")
        assert (answer["verdict"], answer["hint"]) == ("failed", "Let it be read")
        assert "Permission denied" in answer["explanation"]


def test_root_that_is_away_is_not_a_missing_file(memory: Memory) -> None:
    away = memory.root.rename(memory.root.with_name("away"))
    with memory.running():
        assert why_not(memory, "boat", "memory/1.md:1")["verdict"] == "workspace_away"
    away.rename(memory.root)


def test_file_that_was_not_read_yet_is_to_be_waited_for(memory: Memory) -> None:
    with memory.running():
        memory.settle()
        memory.write("memory/new.md", "zeppelin\n")
        assert why_not(memory, "zeppelin", "memory/new.md:1")["verdict"] == "pending"
        memory.write("memory/1.md", "another zeppelin\n")
        assert why_not(memory, "zeppelin", "memory/1.md:1")["verdict"] == "pending"
        memory.look()
        assert why_not(memory, "zeppelin", "memory/1.md:1")["verdict"] == "found"
        assert why_not(memory, "zeppelin", "memory/new.md:1")["verdict"] == "found"


def test_path_of_several_workspaces_is_told_apart(memory: Memory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "memory").mkdir(parents=True)
    (other / "memory/1.md").write_text("The boat of another\n")
    memory.configure(workspaces=(Workspace(memory.root, "notes"), Workspace(other, "other")))
    with memory.running():
        memory.settle()
        with pytest.raises(InvalidParams, match="several workspaces"):
            why_not(memory, "boat", "memory/1.md:1")
        assert why_not(memory, "boat", "memory/1.md:1", workspace="other")["passage"]["workspace"] == "other"
        hidden = why_not(memory, "boat", "memory/2.md:1", workspace="other")
        assert (hidden["verdict"], hidden["remedies"][0]["value"]) == ("filtered", ["other", "notes"])


# -- vectors --------------------------------------------------------------------------------------------------------


class Forgetful(FakeEmbedder):
    """An embedder that can read a question, but no document."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        raise EmbedderUnavailable("out of memory", hint="Close something")


def test_vectors_that_are_late_are_told_and_why(tmp_path: Path) -> None:
    memory = Memory(tmp_path, Forgetful())
    memory.write("memory/a.md", "The boat\n")
    with memory.running() as engine:
        eventually(lambda: engine.queue.failures() != [], what="embedding failed")
        late: dict[str, Any] = {}

        def is_told() -> bool:
            late.update(why_not(memory, "kites", "memory/a.md:1"))
            return bool(late["hint"] == "Close something")

        eventually(is_told, what="it is told")  # a look at the stores has it tried again: for a moment it did not fail
        assert (late["verdict"], late["hint"]) == ("vectors_pending", "Close something")
        assert "out of memory" in late["explanation"]
        assert late["stages"][0] == {"stage": "indexed", "passed": True, "detail": "lines 1-1, vectors pending"}


# -- privacy --------------------------------------------------------------------------------------------------------


def test_nothing_of_anothers_note_is_told(memory: Memory) -> None:
    memory.write("memory/bob.md", "---\nscope: user:bob\n---\n# Hideout\n\nThe zeppelin lands at noon.\n")
    with memory.running():
        memory.settle()
        answers = [
            {**why_not(memory, query, f"memory/bob.md:{line}", scope="user:ana"), "query": "", "took_ms": 0}
            for query in ("zeppelin lands", "kites")
            for line in (6, 600)
        ]
        for answer in answers:
            del answer["passage"]["line"]
            for remedy in answer["remedies"]:
                del remedy["command"]
            assert answer == answers[0]
        assert answers[0]["verdict"] == "filtered"
        assert not any(word in json.dumps(answers) for word in ("Hideout", "zeppelin", "noon"))


def test_anothers_note_is_nobodys_twin(memory: Memory) -> None:
    memory.write("memory/ana.md", "---\nscope: user:ana\n---\nThe zeppelin lands at noon.\n")
    memory.write("memory/bob.md", "---\nscope: user:bob\n---\nThe zeppelin lands at noon.\n")
    with memory.running():
        memory.settle()
        told = why_not(memory, "zeppelin", "memory/ana.md:4", scope="user:ana")
        assert told["verdict"] == "found"
        assert "bob" not in json.dumps(told)


# -- explain --------------------------------------------------------------------------------------------------------


def test_explained_answer_tells_weights_filters_and_losses(memory: Memory) -> None:
    memory.write("skills/sail.md", "The boat sails\n")
    with memory.running():
        memory.settle()
        answer = memory.search("boat", limit=2, explain=True, source="memory", after="2000-01-01")
        assert answer["filters"] == {"on": {"source": ["memory"], "after": "2000-01-01"}, "documents": 0, "of": 10}
        answer = memory.search("boat", limit=2, explain=True, source="memory", exclude=["memory/1.md"])
        assert (answer["filters"]["documents"], answer["filters"]["of"]) == (8, 10)
        assert answer["weights"].keys() == {"words", "trigram", "vector"}
        assert answer["weights"]["words"].keys() == {"prior", "noise", "best", "value", "standout"}
        assert sum(answer["lost"].values()) == 6
        explain = answer["results"][0]["explain"]
        assert explain["legs"]["words"].keys() == {"rank", "score", "share"}
        assert explain.keys() >= {"legs", "fused", "relevance", "decay", "age_days"}
        assert memory.search("boat", explain=True)["filters"] == {"on": {}, "documents": 10, "of": 10}
        assert memory.search("boat", explain=True, scope="user:ana")["filters"]["of"] is None
        assert not {"weights", "filters", "lost"} & memory.search("boat").keys()


# -- the real model --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("default_model")
def test_with_the_real_model(tmp_path: Path, models_dir: Path) -> None:
    memory = Memory(tmp_path)
    memory.configure(embedder=Embedder(model=DEFAULT_MODEL))
    memory.load = embedder_loader(memory.config, models_dir)  # type: ignore[assignment]
    memory.write("memory/pets.md", "The puppy sleeps in the kitchen.\n")
    for number, text in enumerate(("Tax forms are due in May.", "The router was restarted.", "Buy oat milk.")):
        memory.write(f"memory/{number}.md", f"{text}\n")
    with memory.running():
        memory.settle()
        by_meaning = why_not(memory, "where does the little dog rest", "memory/pets.md:1")
        assert (by_meaning["verdict"], by_meaning["place"]) == ("found", 1)
        assert by_meaning["legs"]["words"] is None
        assert by_meaning["legs"]["vector"]["rank"] == 1
        off = why_not(memory, "little dog", "memory/pets.md:1", settings={"weights": {"vector": 0}})
        assert off["verdict"] == "not_a_candidate"
        assert [(each["setting"], each["place"]) for each in off["remedies"]] == [("search.weights.vector", 1)]
        lost = why_not(memory, "quarterly revenue", "memory/pets.md:1", limit=1)
        assert lost["verdict"] in ("limit", "min_score", "not_a_candidate")
        for remedy in lost["remedies"]:
            assert remedy["place"] is not None
