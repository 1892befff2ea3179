"""The status of a real engine as people and monitors see it: plain, on one screen, and as metrics."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from memoryd.daemon.commands.dashboard import compose, sparkline
from memoryd.daemon.commands.prometheus import render_metrics
from memoryd.daemon.commands.status import render
from memoryd.daemon.config import Embedder, Index
from memoryd.store.errors import ModelCorrupt
from memoryd.store.search.pipeline import BESIDE
from tests.support.engine import Memory

Status = dict[str, Any]


@pytest.fixture(scope="module")
def status(tmp_path_factory: pytest.TempPathFactory) -> Status:
    memory = Memory(tmp_path_factory.mktemp("memory"))
    memory.write("memory/a.md", "A lighthouse in the fog.")
    memory.write("memory/b.md", "b" * 2000)
    memory.configure(index=Index(max_file_bytes=1024))
    with memory.running() as engine:
        memory.settle()
        memory.search("lighthouse")
        engine.measures.note_request("search", 12.5, None)
        engine.measures.note_request("search", 1.5, "invalid_params")
        return memory.status()


def degraded(status: Status, *reasons: tuple[str, str]) -> Status:
    found = [{"code": "files_failed", "message": message, "hint": hint} for message, hint in reasons]
    return {**status, "health": {"state": "degraded", "reasons": found}}


def printed(status: Status, width: int = 100) -> list[str]:
    console = Console(width=width, record=True, highlight=False, file=io.StringIO())
    console.print(render(status))
    return console.export_text().splitlines()


# -- who embeds -------------------------------------------------------------------------------------------


def test_service_that_embeds_is_told_and_that_it_is_held_back(status: Status) -> None:
    hold = {"reason": "503", "hint": None, "lasting": False, "until": "2999-01-01T00:00:00+00:00", "queries": True}
    remote = {"provider": "openai", "why": "as configured", "sends_to": "api.openai.com", "hold": hold}
    lines = "\n".join(printed({**status, "embedder": {**status["embedder"], **remote}}, width=200))
    assert "openai (as configured) · notes are sent to api.openai.com" in lines
    assert "held back, asked again in" in lines
    off = {"provider": "none", "state": "off", "model": None, "dimension": None, "reason": "by words alone"}
    assert "none · off · by words alone" in "\n".join(printed({**status, "embedder": {**status["embedder"], **off}}))


def test_generation_that_is_being_opened_is_not_one_that_is_kept(status: Status) -> None:
    opening = {"model": "m", "fingerprint": "f", "state": "kept", "kept_until": None}
    lines = "\n".join(printed({**status, "embedder": {**status["embedder"], "generations": [opening]}}))
    assert "vectors of m" not in lines


# -- what is measured -------------------------------------------------------------------------------------


def test_indexing_and_searching_are_measured(status: Status) -> None:
    measures = status["measures"]
    assert measures["written"]["files"] == 1  # the other is too large
    assert measures["written"]["passages"] == measures["written"]["computed"] == sum(measures["throughput"]["passages"])
    assert measures["written"]["passages"] > 0
    assert measures["jobs"]["index"]["done"] == 2
    assert measures["jobs"]["embed"]["seconds"] > 0
    (search,) = measures["last_searches"]
    assert {"words", "trigram", "embed", "nearest", "vector", "rank"} == set(search["stages"])
    assert sum(ms for stage, ms in search["stages"].items() if stage not in BESIDE) <= search["took_ms"]


def test_nothing_of_a_query_is_kept(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.write("memory/a.md", "A lighthouse in the fog.")
    with memory.running():
        memory.settle()
        memory.search("xylophone secret")
        assert "xylophone" not in str(memory.status())


def test_a_job_that_fails_is_counted(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.embedder.failure = ModelCorrupt("it reads nothing")
    memory.write("memory/a.md", "A thistle.")
    with memory.running():
        memory.settle()
        assert (
            memory.status()["measures"]["jobs"]["embed"]["failed"] >= 1
        )  # it is tried once more by the look at the stores


# -- languages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "model", "advised"),
    [
        ("今天我们把所有的胶圈都换成了新的型号，并且记录了每一个批次。", "all-minilm-l6-v2", True),
        ("今天我们把所有的胶圈都换成了新的型号，并且记录了每一个批次。", "bge-m3", False),
        ("We replaced every seal today, and wrote down each batch. 胶圈", "all-minilm-l6-v2", False),
    ],
)
def test_status_recommends_a_multilingual_model_for_cjk_notes(
    tmp_path: Path, text: str, model: str, advised: bool
) -> None:
    memory = Memory(tmp_path)
    memory.configure(embedder=Embedder(model=model))
    memory.write("memory/a.md", text)
    with memory.running():
        memory.settle()
        notes = memory.status()["notes"]
        assert any("memoryd model use" in note for note in notes) is advised
        assert any("memoryd model use" in line for line in printed(memory.status(), 300)) is advised


# -- plain ------------------------------------------------------------------------------------------------


def test_first_line_is_the_verdict_then_what_to_do_then_facts(status: Status) -> None:
    sick = degraded(status, ("notes: 3 files could not be indexed", "chmod them"), ("the disk is full", "Free some"))
    lines = printed(sick)
    assert lines[0].startswith("▲ memoryd: degraded, 2 things need doing")
    assert [line.strip() for line in lines[1:5]] == [
        "notes: 3 files could not be indexed",
        "→ chmod them",
        "the disk is full",
        "→ Free some",
    ]
    assert any(line.lstrip().startswith("workspace") for line in lines[5:])
    assert printed(status)[0].startswith("● memoryd: all is well")


def test_plain_status_tells_the_speed(status: Status) -> None:
    assert any("half of 2 queries within 1.5 ms" in line and "memory" in line for line in printed(status))
    one = copy.deepcopy(status)
    one["measures"]["requests"]["search"]["in_window"] = 1
    assert any("one query in the last 5 min, 1.5 ms" in line for line in printed(one))


# -- one screen -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded(status: Status) -> Status:
    """More of everything than fits."""
    many = copy.deepcopy(status)
    many["workspaces"] = [{**many["workspaces"][0], "name": f"workspace-{n}-{'x' * 40}"} for n in range(30)]
    many["measures"]["last_searches"] *= 20
    many["last_errors"] = [
        {"at": many["started_at"], "job": "index:notes:a.md", "code": "c", "reason": "r" * 300, "hint": None}
    ]
    return degraded(many, *[(f"reason {n} " + "words " * 40, "hint " * 40) for n in range(9)])


@given(st.integers(20, 250), st.integers(8, 80), st.booleans())
def test_the_picture_fits_every_terminal(status: Status, crowded: Status, width: int, height: int, full: bool) -> None:
    picture = compose(crowded if full else status, 0.5, width, height)
    lines = picture.split("\n")
    assert len(lines) == height
    assert all(line.cell_len <= width for line in lines)
    assert ("degraded" if full else "all is well") in lines[0].plain or width < 40
    assert lines[-1].plain == "q quits"


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_the_picture_has_what_matters(status: Status, size: tuple[int, int]) -> None:
    text = compose(status, 0.37, *size).plain
    for word in ("search", "p50", "p95", "p99", "indexing", "queue", "CPU 37%", "memory", "workspace", "last queries"):
        assert word in text
    assert ("█" in text.partition("last queries")[2]) is (size[0] >= 120)


def test_a_daemon_that_went_away_is_the_first_thing_said(status: Status) -> None:
    assert compose(status, 0, 80, 24, "not running since 12:00:00").plain.startswith("✗ memoryd: not running since")


def test_sparkline_goes_from_nothing_to_the_highest() -> None:
    assert sparkline([0, 1, 50, 100]) == "▁▂▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


# -- metrics ----------------------------------------------------------------------------------------------


def samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def test_metrics_are_what_prometheus_reads(status: Status) -> None:
    text = render_metrics(status)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert text.count("# TYPE") == text.count("# HELP") == len(families)
    assert all(name.startswith("memoryd_") for name in families)
    found = {(name, *sorted(labels.items())): value for name, labels, value in samples(text)}
    assert found[("memoryd_up",)] == 1
    assert found[("memoryd_workspace_documents", ("workspace", "notes"))] == 1
    assert found[("memoryd_request_duration_seconds_count", ("method", "search"))] == 2
    assert found[("memoryd_request_duration_seconds_sum", ("method", "search"))] == pytest.approx(0.014)
    assert found[("memoryd_request_errors_total", ("code", "invalid_params"), ("method", "search"))] == 1
    assert found[("memoryd_jobs_total", ("kind", "index"), ("outcome", "done"))] == 2
    assert found[("memoryd_health", ("state", "ok"))] == 1
    assert families["memoryd_request_duration_seconds"].type == "histogram"
    for family in families.values():
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples)


def test_every_metric_is_documented(crowded: Status) -> None:
    documented = (Path(__file__).parents[2] / "docs/operating.md").read_text()
    undocumented = [
        line.split()[2]
        for line in render_metrics(crowded).splitlines()
        if line.startswith("# TYPE") and f"`{line.split()[2]}`" not in documented
    ]
    assert undocumented == []


def test_histogram_grows_up_to_infinity(status: Status) -> None:
    counts = [v for name, labels, v in samples(render_metrics(status)) if name.endswith("_bucket")]
    assert counts == sorted(counts)
    assert counts[-1] == 2


def test_without_a_daemon_the_metrics_say_so() -> None:
    assert list(samples(render_metrics(None))) == [("memoryd_up", {}, 0)]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_label_survives(status: Status, name: str) -> None:
    """Prometheus' lines end at a line feed alone; its Python parser is given them so."""
    named = {**status, "workspaces": [{**status["workspaces"][0], "name": name}]}
    wanted = "memoryd_workspace_files{workspace="
    lines = [line for line in render_metrics(named).split("\n") if line.startswith(wanted)]
    assert len(lines) == 1
    (family,) = text_string_to_metric_families("\n".join(lines) + "\n")
    assert family.samples[0].labels["workspace"] == name


def test_counters_never_shrink_while_the_daemon_runs(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.write("memory/a.md", "A lighthouse in the fog.")
    with memory.running() as engine:
        memory.settle()
        before = _counters(memory.status())
        memory.write("memory/a.md", "A violin in the fog.")
        memory.look()
        engine.measures.note_request("search", 1.0, None)
        after = _counters(memory.status())
    assert all(after[key] >= value for key, value in before.items())
    assert sum(after.values()) > sum(before.values())


def _counters(status: Status) -> dict[tuple[Any, ...], float]:
    families = text_string_to_metric_families(render_metrics(status))
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        if family.type in ("counter", "histogram")
        for sample in family.samples
    }
