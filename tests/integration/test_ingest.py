"""Ingest from the engine down: files, a language model over HTTP or in this process, facts on disk and in the index."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.app import embedder_loader
from memoryd.daemon.config import Embedder, Ingest, Llm
from memoryd.daemon.ingest_methods import IngestMethods
from memoryd.daemon.ingestion import Wish
from memoryd.daemon.methods import Methods
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from memoryd.store.errors import Busy, InvalidParams, LanguageModelMissing, NotFound
from tests.support.chat_server import ChatServer, Dictated, run_chat_server
from tests.support.clock import SetClock
from tests.support.engine import Memory
from tests.support.scribe import asked_text, write_down
from tests.support.waiting import eventually

DAY = 86_400.0
LAMP = "# Lamp\n\nThe lamp of the lighthouse is lit at dusk. Its oil is kept in the green shed.\n"
BOATS = "# Boats\n\nThe boats are counted at noon by Ida. Nobody sails after the second bell.\n"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with run_chat_server() as server:
        server.rule = write_down
        yield server


@pytest.fixture
def memory(tmp_path: Path, server: ChatServer) -> Memory:
    memory = Memory(tmp_path)
    memory.configure(llm=Llm(provider="openai-compatible", model="scribe", base_url=server.url))
    memory.write("skills/lamp.md", LAMP)
    memory.write("AGENTS.md", BOATS)
    memory.write("memory/other.md", "A diary that nobody asks about.\n")
    return memory


def ingest(memory: Memory, **params: Any) -> dict[str, Any]:
    result = asyncio.run(IngestMethods(memory.live).ingest(params))
    memory.settle()
    return result


def facts(memory: Memory, **params: Any) -> dict[str, dict[str, Any]]:
    """By their text."""
    return {fact["text"]: fact for fact in IngestMethods(memory.live).list(params)["facts"]}


def test_facts_are_stored_searched_with_everything_else_and_cite_their_origin(
    memory: Memory, server: ChatServer
) -> None:
    with memory.running():
        memory.settle()
        done = ingest(memory)
        assert (done["files"], done["asked"], done["stored"], done["complete"]) == (2, 2, 4, True)
        assert done["error"] is None
        assert facts(memory).keys() == {
            "The lamp of the lighthouse is lit at dusk.",
            "Its oil is kept in the green shed.",
            "The boats are counted at noon by Ida.",
            "Nobody sails after the second bell.",
        }
        found = memory.search("boats counted at noon", source="facts")["results"]
        assert {hit["source"] for hit in found} == {"facts"}
        assert found[0]["snippet"] == "The boats are counted at noon by Ida."
        assert found[0]["origin"] == {
            "workspace": "notes",
            "path": "AGENTS.md",
            "start_line": 1,
            "end_line": 3,
            "citation": "AGENTS.md#L1-L3",
        }
        both = {hit["source"] for hit in memory.search("lamp lit at dusk")["results"]}
        assert both >= {"facts", "skills"}
        assert "facts" in {hit["source"] for hit in memory.search("lamp lit at dusk", workspace="notes")["results"]}
        assert memory.search("ingest origin category durable", source="facts", min_score=0.2)["results"] == []
        text = Methods(memory.live, {}).documents.get({"path": found[0]["path"]})["text"]
        assert "source: facts" in text
        assert not any(path.name == "facts" for path in memory.root.rglob("*"))
        verdict = Methods(memory.live, {}).verify({})
        assert (verdict["in_sync"], verdict["drift"]) == (True, [])
        assert all("response_format" in request for request in server.requests)


def test_second_run_asks_nothing_and_changes_nothing(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        ingest(memory)
        before = facts(memory)
        again = ingest(memory)
        assert (again["asked"], again["kept"], again["stored"], again["changed"]) == (0, 2, 0, 0)
        assert facts(memory) == before
    with memory.running():  # nor after a restart
        assert ingest(memory)["asked"] == 0
    assert len(server.requests) == 2


def test_edit_asks_about_what_changed_alone_and_supersedes_what_is_gone(memory: Memory, server: ChatServer) -> None:
    memory.write(
        "skills/lamp.md",
        LAMP + "".join(f"\n## Part {n}\n\nStep {n} is to turn the wheel {n} times.\n" * 6 for n in range(9)),
    )
    with memory.running():
        first = ingest(memory)
        assert first["asked"] > 3
        asked = len(server.requests)
        path = memory.root / "skills/lamp.md"
        path.write_text(path.read_text().replace("lit at dusk", "lit at dawn"))
        again = ingest(memory)
        assert len(server.requests) - asked == again["asked"] == 1
        assert "lit at dawn" in asked_text(server.requests[-1])
        assert (again["stored"], again["superseded"]) == (1, 1)
        held = facts(memory)
        assert "The lamp of the lighthouse is lit at dawn." in held
        assert "Its oil is kept in the green shed." in held
        assert "The boats are counted at noon by Ida." in held
        assert not any("dusk" in hit["snippet"] for hit in memory.search("lamp dusk", source="facts")["results"])
        shown = memory.search("lamp lit at dusk", source="facts", include_superseded=True)["results"]
        (old,) = [hit for hit in shown if "dusk" in hit["snippet"]]
        assert old["superseded"] is True
        assert old["superseded_by"] == held["The lamp of the lighthouse is lit at dawn."]["path"]
        path.write_text(path.read_text().replace("lit at dawn", "lit at dusk"))  # and back, as git does
        back = ingest(memory)
        assert (back["asked"], back["stored"], back["superseded"]) == (0, 0, 1)
        assert "The lamp of the lighthouse is lit at dusk." in facts(memory)


def test_facts_of_a_deleted_file_are_superseded_and_those_of_one_that_cannot_be_seen_are_not(memory: Memory) -> None:
    with memory.running():
        ingest(memory)
        (memory.root / "AGENTS.md").unlink()
        gone = ingest(memory)
        assert gone["superseded"] == 2
        assert len(facts(memory)) == 2
        away = memory.root.with_name("away")
        memory.root.rename(away)
        unseen = ingest(memory)
        assert unseen["skipped"][0]["reason"]
        assert unseen["superseded"] == 0
        memory.root.mkdir()
        assert "empty" in ingest(memory)["skipped"][0]["reason"]  # an unmounted disk leaves an empty folder
        memory.root.rmdir()
        away.rename(memory.root)
        assert len(facts(memory)) == 2


def test_only_named_files_are_read_and_the_facts_of_others_stay(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        ingest(memory)
        (memory.root / "AGENTS.md").unlink()
        named = ingest(memory, paths=["memory/*.md"])
        assert (named["files"], named["superseded"]) == (1, 0)
        assert ingest(memory, paths=["AGENTS.md"])["superseded"] == 2
        with pytest.raises(InvalidParams):
            ingest(memory, paths=["../*.md"])
        with pytest.raises(InvalidParams, match="No workspace"):
            ingest(memory, workspace=["facts"])


def test_link_that_leads_out_of_the_workspace_is_not_read(memory: Memory, server: ChatServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("The password of the house is swordfish.\n")
    (memory.root / "TOOLS.md").symlink_to(secret)
    (memory.root / "skills/out").symlink_to(tmp_path)
    with memory.running():
        done = ingest(memory)
        assert done["files"] == 2
        assert not any("swordfish" in asked_text(request) for request in server.requests)


def test_facts_are_for_whom_their_source_is(memory: Memory) -> None:
    memory.write("skills/secret.md", "---\nscope: agent:keeper\n---\nThe spare key hangs behind the boiler.\n")
    memory.write("skills/odd.md", "---\nscope: everybody!\n---\nThe other key is under the mat.\n")
    with memory.running():
        done = ingest(memory)
        assert [entry["path"] for entry in done["skipped"]] == ["skills/odd.md"]
        assert memory.found("spare key boiler", scope="agent:painter") == []
        mine = memory.search("spare key boiler", scope="agent:keeper", source="facts")["results"]
        assert mine[0]["scope"] == "agent:keeper"


def test_forgotten_fact_does_not_come_back(memory: Memory) -> None:
    with memory.running():
        ingest(memory)
        methods = IngestMethods(memory.live)
        fact = facts(memory)["The boats are counted at noon by Ida."]
        assert "boats are counted" in methods.show({"id": fact["id"][:8]})["passage"]
        assert methods.show({"id": fact["path"]})["id"] == fact["id"]
        assert [each["id"] for each in methods.forget({"id": [fact["id"]]})["forgotten"]] == [fact["id"]]
        memory.settle()
        assert memory.search("boats counted at noon", source="facts", min_score=0.4)["results"] == []
        again = ingest(memory)
        assert (again["stored"], again["dismissed"]) == (0, 1)
        assert fact["text"] not in facts(memory)
        with pytest.raises(NotFound):
            methods.show({"id": fact["id"]})


def test_fact_that_is_forgotten_during_a_run_does_not_come_back(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        ingest(memory)
        methods = IngestMethods(memory.live)
        fact = facts(memory)["The boats are counted at noon by Ida."]

        def forget_meanwhile(body: dict[str, Any]) -> str:
            methods.forget({"id": [fact["id"]]})  # the run has read it already, and would write that it is superseded
            return write_down(body)

        server.rule = forget_meanwhile
        memory.write("AGENTS.md", BOATS.replace("noon", "dawn"))
        again = ingest(memory)
        assert (again["asked"], again["error"]) == (1, None)
        kept = facts(memory, superseded=True)
        assert "The boats are counted at dawn by Ida." in kept
        assert fact["text"] not in kept
        assert fact["text"] not in [hit["snippet"] for hit in memory.search("boats counted", source="facts")["results"]]


def test_dry_run_tells_the_cost_and_what_is_known_and_asks_nobody(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        plan = ingest(memory, dry_run=True)
        assert (plan["files"], plan["pieces"], plan["answered"], plan["stored"]) == (2, 2, 0, 0)
        assert plan["tokens"] > 2 * memory.config.ingest.max_tokens
        assert (plan["complete"], server.requests) == (False, [])
        ingest(memory)
        fact = next(iter(facts(memory).values()))
        file = memory.live.ingestion.folder.root / fact["path"]
        file.unlink()
        plan = ingest(memory, dry_run=True)
        assert [each["id"] for each in plan["planned"]] == [fact["id"]]
        assert (plan["tokens"], plan["complete"]) == (0, True)
        assert not file.exists()
        assert len(server.requests) == 2


def test_without_a_language_model_it_says_what_to_set(memory: Memory) -> None:
    memory.configure(llm=Llm())
    with memory.running():
        with pytest.raises(LanguageModelMissing) as caught:
            ingest(memory)
        assert "provider" in (caught.value.hint or "")
        assert ingest(memory, dry_run=True)["pieces"] == 2
        assert IngestMethods(memory.live).status({})["model"] is None
        assert not memory.live.ingestion.folder.exists()


def test_refusal_stops_the_run_at_once_and_keeps_what_was_answered(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        server.dictated += [Dictated(401, b"no"), Dictated(401, b"no")]
        refused = ingest(memory)
        assert len(server.requests) == 1
        assert refused["error"]["code"] == "language_model_refused"
        assert refused["error"]["hint"]
        assert "ingest_failing" in memory.health()
        server.dictated.clear()
        assert ingest(memory)["complete"] is True
        assert "ingest_failing" not in memory.health()


def test_model_that_is_away_for_a_moment_is_asked_again(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        server.dictated.append(Dictated(503, b"busy", {"Retry-After": "0.01"}))
        assert ingest(memory)["complete"] is True
        assert len(server.requests) == 3


def test_piece_that_is_too_long_fails_alone(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        server.dictated.append(Dictated(400, b'{"error": {"code": "context_length_exceeded", "message": "too long"}}'))
        done = ingest(memory)
        assert done["complete"] is True
        assert [entry["path"] for entry in done["failed"]] == ["AGENTS.md#L1-L3"]
        assert len(facts(memory)) == 2


def test_bad_lines_are_counted_and_facts_of_the_rest_kept(memory: Memory, server: ChatServer) -> None:
    server.rule = lambda body: (
        f'Here you are:\n{write_down(body)}\n{{"fact": "The moon is made of gorgonzola."}}\n{{"fact": "cut'
    )
    with memory.running():
        done = ingest(memory)
        assert (done["stored"], done["bad_lines"]) == (4, 6)


def test_daily_tokens_are_not_exceeded(memory: Memory) -> None:
    memory.configure(ingest=Ingest(daily_tokens=900))
    with memory.running():
        done = ingest(memory)
        assert done["error"]["code"] == "budget_spent"
        assert done["asked"] == 1
        assert done["tokens"] <= 900 + memory.config.ingest.max_tokens


def test_stopped_run_keeps_its_answers_and_the_next_one_goes_on(memory: Memory, server: ChatServer) -> None:
    with memory.running() as engine:
        server.silent.set()
        underway = engine.ingestion.start(Wish())
        eventually(lambda: server.requests, what="the model is asked")
        with pytest.raises(Busy):
            engine.ingestion.start(replace(Wish(), paths=("x.md",)))
        engine.ingestion.leave(underway)  # as when the client hangs up
        with pytest.raises(Busy, match="is ending"):
            engine.ingestion.start(Wish())
        server.silent.clear()
        assert underway.done.wait(60)
        assert underway.report.error is not None
        assert underway.report.error.code == "cancelled"
        assert len(server.requests) == 1
        done = ingest(memory)
        assert (done["asked"], done["kept"]) == (1, 1)
        assert len(server.requests) == 2


def test_neither_searches_nor_indexing_wait_for_the_model(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        memory.settle()
        server.silent.set()
        waiting = threading.Thread(target=lambda: asyncio.run(IngestMethods(memory.live).ingest({})))
        waiting.start()
        eventually(lambda: server.requests, what="the model is asked")
        memory.write("memory/new.md", "A heron stood on the roof.\n")
        memory.look()
        assert memory.found("heron") == ["memory/new.md"]
        assert IngestMethods(memory.live).status({})["running"] is True
        server.silent.clear()
        waiting.join()


def test_stopping_the_daemon_does_not_wait_for_the_model(memory: Memory, server: ChatServer) -> None:
    with memory.running() as engine:
        server.silent.set()
        engine.ingestion.start(Wish())
        eventually(lambda: server.requests, what="the model is asked")
    with memory.running():  # its lock was given back
        server.silent.clear()
        assert ingest(memory)["complete"] is True


def test_facts_fade_by_their_class_expire_and_last_longer_when_used(memory: Memory, server: ChatServer) -> None:
    clock = SetClock(1_790_000_000.0)
    memory.clock = clock
    server.rule = lambda body: "\n".join(
        line.replace('"procedure"', f'"procedure", "decay": "{decay}"')
        for line, decay in zip(write_down(body).split("\n"), ("permanent", "normal"), strict=True)
    )
    with memory.running() as engine:
        ingest(memory)
        clock.move(20 * DAY)
        hits = {
            hit["snippet"].strip(): hit
            for hit in memory.search("boats bell", source="facts", explain=True, min_score=0)["results"]
        }
        lasting = hits["The boats are counted at noon by Ida."]["explain"]
        fading = hits["Nobody sails after the second bell."]["explain"]
        assert (lasting["decay"], lasting["age_days"]) == (1.0, None)
        assert fading["age_days"] == 20
        assert fading["decay"] == pytest.approx(0.8 + 0.2 * 2 ** (-20 / 30), abs=1e-4)
        engine.ingestion._age()  # what the schedule does, on a thread of its own
        clock.move(15 * DAY)
        engine.ingestion._age()
        memory.settle()
        held = facts(memory)
        assert "Nobody sails after the second bell." in held  # it was found twenty days ago … of thirty
        assert held["Nobody sails after the second bell."]["used"]
        clock.move(31 * DAY)
        engine.ingestion._age()
        memory.settle()
        assert facts(memory).keys() == {
            "The lamp of the lighthouse is lit at dusk.",
            "The boats are counted at noon by Ida.",
        }
        again = ingest(memory)
        assert (again["stored"], again["dismissed"], again["asked"]) == (0, 2, 0)


def test_damaged_answers_are_put_aside_and_the_facts_stay(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        ingest(memory)
    file = memory.data / "ingest.db"
    file.write_bytes(b"\0" * file.stat().st_size)
    with memory.running() as engine:
        before = facts(memory)
        done = ingest(memory)
        assert (done["asked"], done["stored"], done["complete"]) == (2, 0, True)
        assert facts(memory) == before
        assert [incident.store for incident in engine.healer.incidents()] == ["ingest"]


def test_deleted_ledger_is_rebuilt_with_the_facts(memory: Memory, server: ChatServer) -> None:
    with memory.running():
        ingest(memory)
        root = Methods(memory.live, {}).verify({})["root"]
    for file in memory.data.glob("ledger.db*"):
        file.unlink()
    with memory.running():
        memory.settle()
        assert Methods(memory.live, {}).verify({})["root"] == root
        assert len(server.requests) == 2


def test_reload_begins_and_ends_the_schedule(memory: Memory, server: ChatServer) -> None:
    with memory.running() as engine:
        engine.reconfigure(replace(memory.config, ingest=Ingest(enabled=True, schedule_minutes=0.002)))
        eventually(lambda: len(server.requests) == 2 and facts(memory), what="it ran by itself")
        engine.reconfigure(replace(memory.config, ingest=Ingest()))
        assert engine.ingestion.wait(60)
        memory.write("skills/new.md", "The foghorn sounds every four minutes.\n")
        engine.ingestion.run_on_schedule()  # as long as the interval is still known
        assert engine.ingestion.current() is None
        engine.reconfigure(replace(memory.config, llm=Llm(), ingest=Ingest(enabled=True)))
        assert "language_model_missing" in memory.health()


def test_real_models_make_facts_that_are_whole_told_apart_and_found(
    tmp_path: Path, default_model: Path, models_dir: Path, small_llm: Path
) -> None:
    memory = Memory(tmp_path)
    memory.write("skills/lamp.md", LAMP)
    memory.write("skills/copy/lamp.md", LAMP)
    memory.configure(
        embedder=Embedder(model=DEFAULT_MODEL),
        llm=Llm(provider="local", model=str(small_llm)),
        ingest=Ingest(max_tokens=96),
    )
    memory.load = embedder_loader(memory.config, models_dir)  # type: ignore[assignment]
    with memory.running() as engine:
        memory.settle()
        done = ingest(memory)
        assert (done["error"], done["complete"], done["pieces"], done["asked"]) == (None, True, 2, 1)  # the same piece
        assert done["stored"] > 0
        assert done["duplicates"] >= done["stored"]  # all that the copy says was said
        for fact in facts(memory).values():
            assert fact["origin"]["citation"] == "skills/copy/lamp.md#L1-L3"
            assert 8 <= len(fact["text"]) <= 300
            hits = memory.search(fact["text"], source="facts")["results"]
            assert fact["path"] in [hit["path"] for hit in hits]
            assert (
                "vector" in memory.search(fact["text"], source="facts", explain=True)["results"][0]["explain"]["legs"]
            )
        assert ingest(memory)["asked"] == 0
        assert Methods(engine, {}).verify({})["in_sync"]
