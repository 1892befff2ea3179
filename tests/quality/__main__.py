"""``python -m tests.quality``: the quality set as a table, by type of question and by leg.

    --misses           also print the questions that were missed, and what came instead
    --set KEY=VALUE    a setting of [search], e.g. rrf_k=20 or weights.vector=0 (repeatable)

The index stays in the cache folder, so that a second run embeds nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.daemon.config_file import load_config
from memoryd.daemon.logs import configure_logs
from memoryd.daemon.paths import find_paths
from memoryd.daemon.search_methods import search_settings
from memoryd.store.search.metrics import mean, percentile
from tests.quality.measure import (
    CUT,
    FEW,
    Outcome,
    answerable,
    ask,
    describe_misses,
    few_notes,
    indexed,
    of_few_notes,
    of_type,
    quality_memory,
    separation,
    share,
)
from tests.quality.queries import ABSENT, FAR, read_queries

LEGS = ("words", "trigram", "vector")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.quality", description="Measure the search on our own set.")
    parser.add_argument("--misses", action="store_true", help="print what was missed, and what came instead")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of [search], e.g. weights.vector=0"
    )
    arguments = parser.parse_args()
    configure_logs("warning", "auto")
    paths = find_paths(Config(), os.environ)
    folder = paths.cache_dir / "quality"
    folder.mkdir(parents=True, exist_ok=True)
    memory = quality_memory(folder, paths.models_dir)
    overrides = {f"search.{key}": value for key, _, value in (pair.partition("=") for pair in arguments.set)}
    config = load_config(None, {}, Path.cwd(), overrides=overrides, workspaces=[memory.config.workspaces[0].path])
    memory.configure(search=config.search)
    queries = read_queries()
    settings = search_settings(config.search)
    with indexed(memory) as engine:
        runs = {"all legs": ask(engine, queries, settings)}
        for leg in LEGS:
            alone = replace(settings, weights={other: float(other == leg) for other in LEGS})
            runs[leg] = ask(engine, queries, alone)
    _print_table(runs)
    for few, names in FEW.items():
        shutil.rmtree(folder / few, ignore_errors=True)
        part = quality_memory(folder / few, paths.models_dir, few_notes(folder / few / "notes", names))
        part.configure(search=config.search)
        with indexed(part) as engine:
            _print_few(f"{len(names)} {few} notes alone:", ask(engine, of_few_notes(queries, names), settings))
    if arguments.misses:
        missed = [outcome for outcome in answerable(runs["all legs"]) if not outcome.found]
        behind = [outcome for outcome in of_type(runs["all legs"], "fresh") if outcome.found and not outcome.current]
        sys.stdout.write(f"\nMissed:\n{describe_misses(missed)}\n\nNewer behind older:\n{describe_misses(behind)}\n")


def _print_table(runs: dict[str, list[Outcome]]) -> None:
    out = sys.stdout.write
    full = runs["all legs"]
    kinds = list(dict.fromkeys(outcome.query.type for outcome in full if outcome.query.gold))
    figures = ("hit@1", f"hit@{CUT}", "hit@10", "mrr@10")
    out(f"{'':14}{'queries':>8}" + "".join(f"{figure:>8}" for figure in figures))
    out("".join(f"{leg:>9}" for leg in LEGS) + f"   (hit@{CUT} of each leg alone)\n")
    for kind in (*kinds, "all"):
        chosen = {name: answerable(run) if kind == "all" else of_type(run, kind) for name, run in runs.items()}
        measures = mean([outcome.measures() for outcome in chosen["all legs"]])
        out(f"{kind:14}{len(chosen['all legs']):8}" + "".join(f"{measures[f'line.{name}']:8.3f}" for name in figures))
        out("".join(f"{_hit_rate(chosen[leg]):9.3f}" for leg in LEGS) + "\n")
    fresh = {name: share([outcome.current for outcome in of_type(run, "fresh")]) for name, run in runs.items()}
    out(f"{'newer before older:':27}" + ", ".join(f"{name} {value:.3f}" for name, value in fresh.items()) + "\n")
    for kind in ABSENT:
        apart = {name: separation(run, kind) for name, run in runs.items()}
        told = ", ".join(f"{name} {value:.3f}" for name, value in apart.items())
        out(f"{f'answered from {kind}:':27}{told} (area under the curve)\n")
    by_kind = {"answered": answerable(full)} | {kind: of_type(full, kind) for kind in ABSENT}
    for kind, outcomes in by_kind.items():
        empty, doubted = (share([o.is_silent for o in outcomes]), share([o.doubted for o in outcomes]))
        named, warned = (share([bool(o.missing) for o in outcomes]), share([o.is_warned for o in outcomes]))
        told = f"empty {empty:.3f}, doubted {doubted:.3f}, a word named that no note has {named:.3f}"
        out(f"{f'{kind}:':27}{told}, any of these {warned:.3f}\n")
    for kind, outcomes in by_kind.items():
        scores = [outcome.best_score for outcome in outcomes]
        low, middle, high = (percentile(scores, at) for at in (0.1, 0.5, 0.9))
        out(f"{f'best score, {kind}:':27}p10 {low:.3f}, p50 {middle:.3f}, p90 {high:.3f}\n")


def _print_few(heading: str, outcomes: Sequence[Outcome]) -> None:
    asked, far = answerable(outcomes), of_type(outcomes, FAR)
    found, silent = (sum(o.found for o in asked), sum(o.is_silent for o in far))
    told = f"{found} of {len(asked)} answered among the first {CUT}, {silent} of {len(far)} {FAR} met with silence"
    sys.stdout.write(f"{heading:27}{told}\n")


def _hit_rate(outcomes: Sequence[Outcome]) -> float:
    return share([outcome.found for outcome in outcomes])


if __name__ == "__main__":
    main()
