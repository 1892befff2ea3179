"""The whole path with the real model: a question finds the note that shares no word with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Embedder
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from tests.support.engine import Memory

EXAMPLES = Path(__file__).parents[2] / "examples/workspace"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, default_model: Path, models_dir: Path) -> Memory:
    memory = Memory(tmp_path_factory.mktemp("llama"))
    shutil.copytree(EXAMPLES, memory.root, dirs_exist_ok=True)
    memory.write("memory/plumbing.md", "# House\n\nThe faucet in the bathroom drips; a washer must be replaced.\n")
    memory.write("memory/animals.md", "# Animals\n\nOur puppy was vaccinated by the veterinarian on Tuesday.\n")
    memory.configure(embedder=Embedder(model=DEFAULT_MODEL))
    memory.load = embedder_loader(memory.config, models_dir)  # type: ignore[assignment]
    return memory


def test_question_by_meaning_finds_the_note_that_shares_no_words(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        totals = engine.documents.totals("notes", 1)
        assert totals.vectors == totals.passages > 50
        for question, path in (("leaky tap", "memory/plumbing.md"), ("dog doctor appointment", "memory/animals.md")):
            answer = memory.search(question, explain=True)
            assert answer["degraded"] is None
            places = {hit["path"]: hit["explain"]["legs"] for hit in answer["results"]}
            assert path in places, question
            assert places[path]["vector"]["rank"] == 1


def test_second_start_embeds_nothing(memory: Memory) -> None:
    with memory.running() as engine:
        memory.settle()
        with engine.database.read() as sql:
            (held,) = sql.execute("SELECT count(*) FROM vectors").fetchone()
        assert held == engine.documents.totals("notes", 1).passages
        assert memory.status()["health"]["state"] == "ok"
