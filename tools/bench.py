"""What memoryd costs beside what its parts cost: ``make bench``.

Everything is measured in one run on generated notes, memoryd and llama.cpp by turns, so that whatever else the
machine does hits both; only the ratios are comparable between machines. A daemon serves a small memory, and then larger
ones, which are kept between runs. The text goes to stdout, ``--json FILE`` gets the same as numbers, ``--keep FOLDER``
keeps what was measured in its baseline.json and draws the plots; ``--check`` ends with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from datetime import datetime
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

from bench_baseline import describe_machine, keep_result
from bench_corpus import Corpus, Note, Writer, make_corpus, make_queries, slices, write_notes
from bench_daemon import MEMORYD, Daemon, Home, run_measured
from bench_growth import IDLE_S as GROWTH_IDLE_S
from bench_growth import SIZES, growth_bars, measure_growth
from bench_idle import SLEEPY, measure_idle, measure_sleep
from bench_intake import intake_bars, measure_intake
from bench_limits import measure_limits
from bench_load import measure_idle_connections, measure_load
from bench_memory import keep_memory
from bench_raw import BareQueries, RawModel, Run, find_contenders, sum_runs
from bench_report import print_report
from bench_spread import spread, with_rest

from memoryd.daemon.config import Embedder
from memoryd.daemon.logs import configure_logs
from memoryd.jobs.models.install import install
from memoryd.jobs.spare_memory import QUIET_S

SLICE = 32  # passages that llama.cpp embeds with each setting when it has its turn
TURN_S = 8.0  # seconds of indexing between two turns of llama.cpp
QUERY_BLOCK = 20
NEW_CHUNKS = 40  # indexed while queries are asked
STARTS = 3
IDLE_S = 30.0  # what work has left in memory is given back within 20 s
SETTLE_S = 2 * QUIET_S + 5  # what follows the last job: LanceDB's own threads, the first light proof, memory given back
CLI_RUNS = 24
IDLE_PERCENT = 0.05  # what is less is 0.0 %
STAGES = {  # in their order; each can be measured alone
    "daemon": "a daemon on a small memory",
    "intake": "indexing besides embedding",
    "load": "many clients at once",
    "idle": "a daemon with nothing to do",
    "growth": "how cost grows with the memory",
}


def main() -> int:
    arguments = parse_arguments()
    configure_logs("warning", "auto")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the daemon is not left behind
    cache = Path(os.environ.get("MEMORYD_PATHS__CACHE") or Path.home() / ".cache/memoryd")
    model = install(Embedder().model, cache / "models")
    if arguments.growth_make:
        for size in arguments.growth_chunks:
            print(json.dumps(keep_memory(size, cache).facts))
        return 0
    result: dict[str, Any] = {"machine": {**describe_machine(), "load_before": os.getloadavg()[0]}}
    bars: dict[str, bool] = {}
    only = [stage for stage in STAGES if getattr(arguments, f"{stage}_only")]
    wanted = only or [*STAGES]
    if "daemon" in wanted:
        measure_daemon(arguments, model, result)
        bars |= {
            "index throughput ≥ 0.95 × raw llama.cpp": result["index"]["ratio"] >= 0.95,
            "search p50 ≤ 8 × a bare query embedding": result["search"]["ratio"] <= 8,
            "saved note found by its words within 300 ms (p95)": result["save"]["keyword_ms"]["p95"] <= 300,
            "cold 'memoryd search' ≤ 2 × python -c pass and the query": result["cli"]["ratio"] <= 2,
        }
    if "intake" in wanted:
        say("Indexing 10,000 files at once, then changing one line in 10,000 chunks, all without a model …")
        result["intake"] = measure_intake()
        bars |= intake_bars(result["intake"])
    if "load" in wanted:
        measure_crowd(arguments, result, bars)
    if "idle" in wanted:
        measure_quiet(arguments, result, bars)
    if "growth" in wanted:
        sizes = arguments.growth_chunks
        say(f"Searching in {', '.join(f'{size:,}' for size in sizes)} chunks; they are made once, for minutes …")
        result["growth"] = measure_growth(sizes, arguments.queries, cache, model, arguments.growth_idle)
        bars |= growth_bars(result["growth"])
    result["machine"]["load_after"] = os.getloadavg()[0]
    result["bars"] = bars
    print_report(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    if arguments.keep:
        keep_result(result, arguments.keep)
    return int(arguments.check and not all(bars.values()))


def measure_daemon(arguments: argparse.Namespace, model: Path, result: dict[str, Any]) -> None:
    """A daemon on a small corpus: indexing, searches, saves, starts, beside llama.cpp alone."""
    say("Writing the corpus …")
    corpus = make_corpus(arguments.chunks)
    queries = make_queries(arguments.queries)
    extra = dict(pair.split("=", 1) for pair in arguments.env)
    result["corpus"] = {"notes": len(corpus.notes), "chunks": corpus.chunks, "passages": len(corpus.passages)}
    result["machine"]["daemon_env"] = extra
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        home = Home(Path(folder))
        write_notes(corpus.notes, home.workspace)
        say("llama.cpp alone: looking for its best settings …")
        sample = next(slices(corpus.passages, max(1, len(corpus.passages) // 24)))
        contenders, result["raw_settings"] = find_contenders(model, sample)
        raws = [RawModel(model, setting) for setting in contenders]
        daemon = Daemon(home, extra)
        try:
            result["index"] = measure_index(daemon, raws, corpus)
            result["search"] = measure_search(daemon, model, queries)
            result["search"]["limits"] = measure_limits(home.data, queries)
            result["search"]["while_indexing"] = measure_search_while_indexing(daemon)
            result["save"] = measure_saves(daemon, arguments.saves)
            time.sleep(IDLE_S)
            result["memory"] = {"peak_mb": daemon.memory_mb("VmHWM"), "idle_mb": daemon.memory_mb("VmRSS")}
            result["start"] = measure_starts(daemon, extra)
            daemon = result["start"].pop("daemon")
            result["cli"] = measure_cli(daemon)
            result["start"]["stop_s"] = daemon.stop()
        finally:
            daemon.kill()
            for raw in raws:
                raw.close()


def measure_crowd(arguments: argparse.Namespace, result: dict[str, Any], bars: dict[str, bool]) -> None:
    """A daemon of its own, asked by many clients at once."""
    say(f"Asking on {arguments.connections} connections, then while everything is indexed again …")
    extra = dict(pair.split("=", 1) for pair in arguments.env)
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        home = Home(Path(folder))
        write_notes(make_corpus(arguments.load_chunks).notes, home.workspace)
        daemon = Daemon(home, extra)
        try:
            daemon.wait_for_answer(lambda _: True)
            daemon.client.call("index")
            idle = result["idle_connections"] = measure_idle_connections(daemon)
            load = result["load"] = measure_load(
                daemon, arguments.load_chunks, arguments.connections, arguments.load_seconds, arguments.load_rate
            )
        finally:
            daemon.kill()
    paces = {"at a rate": load["paced"], "flat out": load["flat_out"]}
    heard = [pace[phase] for pace in paces.values() for phase in ("idle", "indexing")]
    who = f"{load['connections']} connections"
    bars[f"{who}: no error, no lost or crossed answer"] = all(
        phase["searches"] and not phase["errors"] + phase["crossed"] + phase["lost"] for phase in heard
    )
    for name, pace in paces.items():
        bars[f"{who}, {name}: p95 while everything is indexed again ≤ 3 × idle"] = pace["ratio"] <= 3
    bars[f"{idle['connections']} idle connections cost < 100 MB"] = idle["mb"] < 100


def measure_quiet(arguments: argparse.Namespace, result: dict[str, Any], bars: dict[str, bool]) -> None:
    """A daemon that has nothing to do, and then one whose model sleeps."""
    say(f"Doing nothing for {arguments.idle_seconds:g} s …")
    extra = dict(pair.split("=", 1) for pair in arguments.env)
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        home = Home(Path(folder))
        write_notes(make_corpus(arguments.idle_chunks).notes, home.workspace)
        for name, settings, measure in (
            ("idle", {}, lambda daemon: measure_idle(daemon, arguments.idle_seconds)),
            ("sleep", SLEEPY, measure_sleep),
        ):
            daemon = Daemon(home, {**settings, **extra})
            try:
                daemon.wait_for_answer(lambda answer: answer["degraded"] is None)
                daemon.client.call("index")
                time.sleep(arguments.idle_settle)
                result[name] = measure(daemon)
            finally:
                daemon.kill()
    idle = result["idle"]
    bars[f"idle: 0.0 % CPU over {idle['seconds']:g} s"] = idle["cpu_percent"] < IDLE_PERCENT
    bars["idle: nothing wakes up but the schedule's clock and, once a minute, the watcher"] = idle["others"] == 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=1000, help="size of the corpus (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=240, help="searches timed (default: %(default)s)")
    parser.add_argument("--saves", type=int, default=20, help="saved notes timed (default: %(default)s)")
    parser.add_argument(
        "--growth-chunks",
        type=lambda words: [int(word) for word in words.split(",")],
        default=[*SIZES],
        metavar="N,N,…",
        help=f"sizes of the larger memories (default: {','.join(map(str, SIZES))})",
    )
    parser.add_argument(
        "--growth-idle",
        type=float,
        default=GROWTH_IDLE_S,
        metavar="SECONDS",
        help="that a daemon rests before its memory is looked at (default: %(default)s)",
    )
    parser.add_argument("--growth-make", action="store_true", help="make the larger memories, and measure nothing")
    for stage, what in STAGES.items():
        parser.add_argument(f"--{stage}-only", action="store_true", help=f"measure nothing but {what}")
    parser.add_argument("--idle-seconds", type=float, default=60, help="for so long (default: %(default)s)")
    parser.add_argument(
        "--idle-settle",
        type=float,
        default=SETTLE_S,
        metavar="SECONDS",
        help="that it has for what follows its last job (default: %(default)s)",
    )
    parser.add_argument("--idle-chunks", type=int, default=200, help="size of its memory (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=200, help="clients at once (default: %(default)s)")
    parser.add_argument("--load-chunks", type=int, default=1000, help="size of their memory (default: %(default)s)")
    parser.add_argument(
        "--load-rate", type=float, default=10, help="searches a second of all together (default: %(default)s)"
    )
    parser.add_argument(
        "--load-seconds", type=float, default=30, help="how long they ask, idle and indexing (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep them as the baseline there, with plots")
    parser.add_argument("--check", action="store_true", help="end with 1 if a bar is missed")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="run the daemon with this setting"
    )
    return parser.parse_args()


def measure_index(daemon: Daemon, raws: list[RawModel], corpus: Corpus) -> dict[str, Any]:
    """The first indexing, llama.cpp alone taking a turn every few seconds while the daemon is stopped (SIGSTOP).

    memoryd's time is that from the start of the first embed job until the index is current, without the pauses.
    The limit is the setting of llama.cpp that embedded most texts per second over all its turns.
    """
    say(f"Indexing {len(corpus.passages)} passages, llama.cpp alone taking turns …")
    parts = cycle(slices(corpus.passages, max(1, len(corpus.passages) // SLICE)))
    turns: dict[str, list[Run]] = {str(raw.setting): [] for raw in raws}

    def take_turns() -> None:
        part = next(parts)
        for raw in raws:
            turns[str(raw.setting)].append(raw.embed(part))

    take_turns()
    daemon.wait_for_answer(lambda _: True)
    done: dict[str, float] = {}

    def wait_until_current() -> None:
        daemon.client.call("index")
        done["at"] = time.time()

    waiting = threading.Thread(target=wait_until_current, daemon=True)
    waiting.start()
    while waiting.is_alive() and not daemon.events("semantics_ready"):
        time.sleep(0.05)
    cpu, pauses = daemon.cpu_seconds(), 0.0
    while waiting.is_alive():
        waiting.join(TURN_S)
        if waiting.is_alive():
            began = time.perf_counter()
            with daemon.paused():
                take_turns()
            pauses += time.perf_counter() - began
    cpu = daemon.cpu_seconds() - cpu
    take_turns()
    jobs = [event for event in daemon.events("job_done") if event["kind"] == "embed"]
    computed = sum(job["computed"] for job in jobs)
    first = datetime.fromisoformat(jobs[0]["timestamp"]).timestamp() - jobs[0]["took_ms"] / 1000
    seconds = done["at"] - first - pauses
    together = {setting: sum_runs(runs) for setting, runs in turns.items()}
    limit = max(together, key=lambda setting: together[setting].rate)
    raw_cpu = together[limit].cpu_seconds / together[limit].texts
    return {
        "passages": computed,
        "seconds": seconds,
        "rate": computed / seconds,
        "cpu_ms_per_passage": cpu / computed * 1000,
        "raw": {setting: {"rate": run.rate, "texts": run.texts} for setting, run in together.items()},
        "raw_best": limit,
        "raw_rate": together[limit].rate,
        "raw_cpu_ms_per_passage": raw_cpu * 1000,
        "ratio": computed / seconds / together[limit].rate,
        "cpu_ratio": raw_cpu / (cpu / computed),
    }


def measure_search(daemon: Daemon, model: Path, queries: list[str]) -> dict[str, Any]:
    """Warm searches and bare embeddings of the same queries, in blocks by turns."""
    say(f"Asking {len(queries)} queries …")
    bare = BareQueries(model)
    for query in make_queries(QUERY_BLOCK, seed=99):  # warm, with other queries than those that count
        daemon.client.call("search", {"query": query})
    embedded: list[float] = []
    searched: list[float] = []
    stages: dict[str, list[float]] = {}
    for start in range(0, len(queries), QUERY_BLOCK):
        block = queries[start : start + QUERY_BLOCK]
        embedded += bare.embed_queries(block)
        for query in block:
            began = time.perf_counter()
            answer = daemon.client.call("search", {"query": query, "min_score": 0, "explain": True})
            searched.append((time.perf_counter() - began) * 1000)
            for stage, ms in with_rest(answer["timings_ms"], searched[-1]).items():
                stages.setdefault(stage, []).append(ms)
    bare.close()
    return {
        "queries": len(queries),
        "bare_ms": spread(embedded),
        "search_ms": spread(searched),
        "stages_ms": {stage: spread(times) for stage, times in stages.items()},
        "ratio": median(searched) / median(embedded),
    }


def measure_search_while_indexing(daemon: Daemon) -> dict[str, Any]:
    """Searches, one after the other, from the moment that new notes appear until they are embedded."""
    say("Asking while new notes are indexed …")
    fresh = make_corpus(NEW_CHUNKS, seed=77).notes
    write_notes(
        [Note(f"memory/fresh/{number}.md", note.text) for number, note in enumerate(fresh)], daemon.home.workspace
    )
    times: list[float] = []
    for query in make_queries(10_000, seed=78):
        began = time.perf_counter()
        answer = daemon.client.call("search", {"query": query})
        if answer["pending_count"]:
            times.append((time.perf_counter() - began) * 1000)
        elif times:
            break
        time.sleep(0.1)
    return {"queries": len(times), **spread(times)}


def measure_saves(daemon: Daemon, saves: int) -> dict[str, Any]:
    """From the moment a note is in place (os.replace) until a search finds it, and until nothing is pending."""
    say(f"Saving {saves} notes …")
    writer = Writer(seed=9)
    keyword, vector = [], []
    folder = daemon.home.workspace / "memory"
    for number in range(saves):
        word = f"quux{number:02}zebrafinch"
        path = folder / f"saved-{number // 2}.md"  # every second save is an edit
        temporary = path.with_suffix(".tmp")
        temporary.write_text(writer.saved_note(word), encoding="utf-8")
        temporary.replace(path)
        began = time.perf_counter()
        deadline = began + 30
        while not found_by_words(daemon.client.call("search", {"query": word, "explain": True}), path.name):
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{path} was saved and is not found")
            time.sleep(0.002)
        keyword.append((time.perf_counter() - began) * 1000)
        while not daemon.client.call("status", {"brief": True})["current"]:
            time.sleep(0.005)
        vector.append((time.perf_counter() - began) * 1000)
    return {"saves": saves, "keyword_ms": spread(keyword), "vector_ms": spread(vector)}


def found_by_words(answer: dict[str, Any], name: str) -> bool:
    return any(hit["path"].endswith(name) and "words" in hit["explain"]["legs"] for hit in answer["results"])


def measure_starts(daemon: Daemon, extra: dict[str, str]) -> dict[str, Any]:
    """Warm starts on a complete index: until the first answer, and until the first by words and meaning."""
    say(f"Starting again, {STARTS} times …")
    first, hybrid = [], []
    for _ in range(STARTS):
        daemon.stop()
        daemon = Daemon(daemon.home, extra)
        first.append(daemon.wait_for_answer(lambda _: True))
        hybrid.append(daemon.wait_for_answer(lambda answer: answer["degraded"] is None))
    return {"keyword_s": median(first), "hybrid_s": median(hybrid), "daemon": daemon}


def measure_cli(daemon: Daemon) -> dict[str, Any]:
    """A cold ``memoryd search`` beside a Python that does nothing and a warm query over the socket, by turns."""
    say("Asking from the command line …")
    python: list[tuple[float, float]] = []
    search: list[tuple[float, float]] = []
    asked: list[float] = []
    for query, another in zip(make_queries(CLI_RUNS, seed=31), make_queries(CLI_RUNS, seed=32), strict=True):
        python.append(run_measured([sys.executable, "-c", "pass"], daemon.home.environment))
        search.append(run_measured([str(MEMORYD), "search", "--json", query], daemon.home.environment))
        began = time.perf_counter()
        daemon.client.call("search", {"query": another})
        asked.append((time.perf_counter() - began) * 1000)
    bare = median(wall for wall, _ in python) + median(asked)
    took = median(wall for wall, _ in search)
    return {
        "python_wall_ms": median(wall for wall, _ in python),
        "python_cpu_ms": median(cpu for _, cpu in python),
        "query_wall_ms": median(asked),
        "search_wall_ms": took,
        "search_cpu_ms": median(cpu for _, cpu in search),
        "ratio": took / bare,
    }


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
