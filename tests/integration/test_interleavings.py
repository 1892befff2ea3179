"""What is asked for while something else is under way: a reload, a stop, another model. Neither is half done."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from memoryd.daemon import engine as engine_module
from memoryd.daemon.config import Config, Ingest, Llm, Workspace
from memoryd.daemon.engine import Engine
from memoryd.daemon.ingestion import Wish
from memoryd.daemon.methods import Methods
from memoryd.daemon.model_methods import go_over
from memoryd.daemon.notify import Notifier
from memoryd.daemon.paths import find_paths
from memoryd.daemon.reload import Reload
from memoryd.daemon.watchers import Watchers
from memoryd.jobs.ingest import folder as fact_folder
from memoryd.jobs.ingest.fact import Fact, Origin
from memoryd.jobs.ingest.folder import fact_path
from memoryd.jobs.llm.openai import OpenAiModel
from memoryd.store.errors import NotFound, StoreFull
from memoryd.store.lifespans import LIFESPANS
from tests.support.engine import Memory
from tests.support.waiting import eventually

DAY = 86_400.0


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path)
    memory.write("memory/quarry.md", "# Quarry\n\nZebras graze beside the quarry.\n")
    return memory


def with_other(memory: Memory, tmp_path: Path) -> Config:
    """The configuration with another workspace, of one note."""
    note = tmp_path / "other" / "memory" / "other.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("# Other\n\nKettles whistle in the pantry.\n", encoding="utf-8")
    return replace(memory.config, workspaces=(*memory.config.workspaces, Workspace(tmp_path / "other", "other")))


class Told:
    """What a service manager is told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def reloading(self) -> None:
        self.words.append("reloading")

    def ready(self, _headline: str) -> None:
        self.words.append("ready")


class Slow:
    """A function of the engine's that stops until it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        self._real = getattr(owner, name)
        monkeypatch.setattr(owner, name, self)

    def __call__(self, *args: Any) -> Any:
        self.entered.set()
        assert self.go_on.wait(60)
        return self._real(*args)


# -- reload -------------------------------------------------------------------------------------------------------


def test_reload_whose_client_goes_away_is_done_all_the_same(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, watchers, told, followed = with_other(memory, tmp_path), Watchers(), Told(), list[Config]()
    with memory.running() as engine:
        slow = Slow(monkeypatch, engine, "reconfigure")
        reload = Reload(lambda: wanted, engine, watchers, cast(Notifier, told), [followed.append])

        async def ask_and_leave() -> None:
            client = asyncio.create_task(reload.run())
            await asyncio.to_thread(slow.entered.wait, 60)
            client.cancel()
            with suppress(asyncio.CancelledError):
                await client
            slow.go_on.set()
            while engine.last_reload is None:
                await asyncio.sleep(0.01)

        try:
            watchers.follow(engine)
            asyncio.run(asyncio.wait_for(ask_and_leave(), 60))
            assert set(watchers) == {"notes", "other"}
            assert [config.workspaces for config in followed] == [wanted.workspaces]
            assert told.words == ["reloading", "ready"]
            memory.settle()
            assert engine.documents.totals("other", None).documents == 1
        finally:
            watchers.stop()


def test_configuration_that_cannot_be_taken_on_changes_nothing_and_can_be_tried_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = Llm(provider="openai-compatible", model="scribe", base_url="http://127.0.0.1:1/v1")
    wanted = replace(memory.config, ingest=Ingest(enabled=True), llm=llm)
    with memory.running() as engine:
        before = engine.config

        def fail() -> None:
            raise StoreFull("No space left")

        with monkeypatch.context() as full:
            full.setattr(engine.ingestion.folder, "create", fail)
            with pytest.raises(StoreFull):
                engine.reconfigure(wanted)
        assert engine.config is before
        engine.reconfigure(wanted)
        assert isinstance(engine.llm, OpenAiModel)
        assert "ingest" in engine.schedule.next_runs()


def test_model_that_is_chosen_during_a_reload_is_the_one_that_is_configured(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memory.running() as engine:
        used: list[str] = []
        monkeypatch.setattr(engine.semantics, "use", lambda models: used.append(models.settings.model))
        slow = Slow(monkeypatch, engine, "reconfigure")
        reload = Reload(lambda: memory.config, engine, Watchers(), cast(Notifier, Told()), [])
        monkeypatch.setattr(reload, "_look_anew", lambda: None)

        async def reload_and_choose() -> None:
            reloading = asyncio.create_task(reload.run())
            await asyncio.to_thread(slow.entered.wait, 60)
            other = replace(engine.config.embedder, model="other")
            choosing = asyncio.create_task(asyncio.to_thread(go_over, engine, other))
            await asyncio.wait([choosing], timeout=0.3)  # long enough for one that does not wait
            slow.go_on.set()
            await asyncio.gather(reloading, choosing)

        asyncio.run(reload_and_choose())
        assert (used, engine.config.embedder.model) == (["other"], "other")


def test_workspace_that_goes_while_it_is_asked_about_is_no_error_of_ours(memory: Memory, tmp_path: Path) -> None:
    one, both = memory.config, with_other(memory, tmp_path)
    with memory.running() as engine:
        engine.reconfigure(both)
        engine.look_at_disk()
        memory.settle()
        methods, indexed_in = Methods(engine, {}), engine.documents.indexed_in

        def go_meanwhile(*args: Any) -> Any:
            found = indexed_in(*args)
            engine.reconfigure(one)
            return found

        engine.documents.indexed_in = go_meanwhile  # type: ignore[method-assign]
        assert methods.documents.get({"path": "memory/other.md"})["workspace"] == "other"
        with pytest.raises(NotFound, match="other any more"):
            engine.verifier.verify(["other"])


# -- a language model ---------------------------------------------------------------------------------------------


class Scribe:
    def __init__(self, name: str) -> None:
        self.name = name

    def complete(self, *_args: Any, **_options: Any) -> str:
        return f'{{"fact": "said by {self.name}"}}'

    def close(self) -> None:
        pass


def test_answers_are_kept_by_the_name_of_the_model_that_gave_them(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "make_language_model", lambda settings, _environ: Scribe(settings.model))
    memory.configure(llm=Llm(provider="ollama", model="old", base_url="http://127.0.0.1:1"))
    newer = replace(memory.config, llm=replace(memory.config.llm, model="new"))
    with memory.running() as engine:
        slow = Slow(monkeypatch, engine_module, "prepare_ledger")
        reload = threading.Thread(target=engine.reconfigure, args=(newer,))
        reload.start()
        assert slow.entered.wait(60)
        run = engine.ingestion.start(Wish(paths=("**/*.md",)))
        run.done.wait(0.3)  # long enough for one that does not wait
        slow.go_on.set()
        reload.join(60)
        assert run.done.wait(60)
        engine.ingestion.start(Wish(paths=("**/*.md",))).done.wait(60)
        with engine.ingestion.answers()._transaction() as sql:
            kept = sql.execute("SELECT model, answer FROM answers").fetchall()
    assert kept
    assert {(model, answer) for model, answer in kept} <= {
        (f"ollama:{name}", f'{{"fact": "said by {name}"}}') for name in ("old", "new")
    }


# -- the end ------------------------------------------------------------------------------------------------------


def start_with_a_fact(memory: Memory) -> tuple[Engine, str]:
    """An engine, and the path of a fact that is to be refreshed because it was used."""
    engine = Engine(memory.config, find_paths(memory.config, {"HOME": str(memory.data)}), memory.models)
    engine.ingestion.folder.create()
    refreshed = next(name for name, lifespan in LIFESPANS.items() if lifespan.refreshed)
    origin = Origin("notes", "memory/quarry.md", 1, 1, "p")
    written = time.time() - 5 * DAY
    fact = Fact("0123456789abcdef", "said", origin, "other", (), refreshed, written, scope="global")
    engine.ingestion.folder.write(fact)
    engine.start()
    engine.ingestion.uses.note([fact_path(fact)], time.time())
    return engine, fact_path(fact)


def test_disk_that_is_full_at_the_end_keeps_no_store_open(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = start_with_a_fact(memory)

    def fail(name: str) -> None:
        if name == "facts.write.before":
            raise StoreFull("No space left")

    monkeypatch.setattr(fact_folder, "failpoint", fail)
    assert engine.stop(30) == []
    with memory.running() as again:
        assert not again.lock.was_cut_off


def test_stop_waits_for_facts_that_are_being_refreshed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, path = start_with_a_fact(memory)
    writing, go_on = threading.Event(), threading.Event()

    def wait(name: str) -> None:
        if name == "facts.write.written" and threading.current_thread().name == "ingest-aging":
            writing.set()
            assert go_on.wait(60)

    monkeypatch.setattr(fact_folder, "failpoint", wait)
    engine.ingestion.tend()
    assert writing.wait(60)
    engine.ingestion.uses.note([path], time.time())  # a query finds it meanwhile
    late: list[list[str]] = []
    stopping = threading.Thread(target=lambda: late.append(engine.stop(30)))
    stopping.start()
    stopping.join(0.3)  # long enough for one that does not wait
    assert stopping.is_alive()
    go_on.set()
    stopping.join(60)
    assert late == [[]]
    assert not any(each.suffix == ".part" for each in engine.ingestion.folder.root.rglob("*"))
    engine.ingestion.tend()  # nothing begins any more
    eventually(lambda: not any(thread.name == "ingest-aging" for thread in threading.enumerate()), what="the end")
