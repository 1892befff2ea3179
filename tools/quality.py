"""How well the search finds what is there, on benchmarks that nobody here wrote: ``make quality``.

Every unit of every benchmark is indexed once by the real engine and asked through the real pipeline, under the
default settings and with parts of them taken away. The tables go to docs/quality.md, all numbers to
docs/quality.json, the plots beside them. The data is not part of the repository: it is unpacked from
../shared/eval/dev.tgz, or QUALITY_DATA names a folder that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from quality_bars import BARS, DECAY_OFF, DECAY_TOLERANCE, FULL, LEG_TOLERANCE, PLAIN_RRF, variants
from quality_plot import draw_bars, draw_lines
from quality_report import replace_tables, tables
from quality_units import CURVE, Pool, RememberedQueries, Unit, find_strangers, find_units, unpack

from memoryd.daemon.commands.assignments import split_assignments
from memoryd.daemon.commands.progress import IndexProgress
from memoryd.daemon.config import Weights
from memoryd.daemon.config_file import load_config
from memoryd.daemon.evaluation import Query, ask, open_index, read_queries, set_apart
from memoryd.daemon.logs import configure_logs
from memoryd.daemon.paths import find_paths
from memoryd.daemon.search_methods import search_settings
from memoryd.store.errors import MemorydError

ROOT = Path(__file__).resolve().parent.parent
ARCHIVE = ROOT.parent / "shared" / "eval" / "dev.tgz"
NOTHING = Path(os.devnull)  # read instead of the user's configuration
LIMIT = 50  # hits asked for: enough for ten different documents
CURVE_OF = "locomo-merged"
LEGS = tuple(asdict(Weights()))
PLOTTED = (*LEGS, PLAIN_RRF, FULL)


class CannotMeasure(Exception):
    """Something is missing; the message says what."""


def main() -> int:
    arguments = parse_arguments()
    configure_logs("warning", "auto")
    environ = own_environment(os.environ)
    try:
        data = find_data(environ)
        everything = find_units(data)
        benches = choose(everything, arguments.bench)
        overrides = split_assignments(arguments.set)
        result = measure(benches, everything, overrides, environ, ablations=not arguments.default_only)
    except (MemorydError, CannotMeasure) as error:
        say(f"quality: {error}")
        return 2
    whole = not (arguments.bench or arguments.set or arguments.default_only)
    if whole or arguments.out:
        write(result, arguments.out or ROOT / "docs")
    print(tables(result))
    return int(arguments.check and not all_held(result))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="With --bench, --set or --default-only the tables are only printed, unless --out names a folder.",
    )
    parser.add_argument("--bench", action="append", default=[], metavar="NAME", help="only this one (repeatable)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting (repeatable)")
    parser.add_argument("--default-only", action="store_true", help="without the ablations")
    parser.add_argument("--check", action="store_true", help="end with 1 if a bar is missed")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="a folder with a quality.md to write to")
    return parser.parse_args()


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the user's settings, save where the models and the indexes are kept."""
    return {
        key: value for key, value in environ.items() if key == "MEMORYD_PATHS__CACHE" or not key.startswith("MEMORYD_")
    }


def find_data(environ: Mapping[str, str]) -> Path:
    """The folder of the benchmarks. Raises ``CannotMeasure`` that says what is needed."""
    if named := environ.get("QUALITY_DATA"):
        if not Path(named).is_dir():
            raise CannotMeasure(f"QUALITY_DATA={named}: there is no such folder")
        return Path(named)
    if not ARCHIVE.is_file():
        raise CannotMeasure(
            "the benchmarks are not here. Put their archive at ../shared/eval/dev.tgz, or name a folder with "
            "<bench>/dev[/<unit>]/{workspace,queries.jsonl,unit.json} in QUALITY_DATA"
        )
    return unpack(ARCHIVE, find_paths(load_config(NOTHING, environ, ROOT), environ).cache_dir / "quality")


def choose(benches: dict[str, list[Unit]], names: Sequence[str]) -> dict[str, list[Unit]]:
    if unknown := [name for name in names if name not in benches]:
        raise CannotMeasure(f"there is no benchmark {unknown[0]}; there are: {', '.join(benches) or 'none'}")
    if not benches:
        raise CannotMeasure("the folder has no benchmarks: <bench>/dev[/<unit>]/queries.jsonl")
    barred = [bar.bench for bar in BARS if bar.bench in benches]
    return {name: benches[name] for name in names or (*barred, *benches)}  # in the order of the bars


def measure(
    benches: Mapping[str, Sequence[Unit]],
    everything: Mapping[str, Sequence[Unit]],
    overrides: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    ablations: bool,
) -> dict[str, Any]:
    result: dict[str, Any] = {"bars": [], "benches": {}}
    began = time.perf_counter()
    for name, units in benches.items():
        pool = Pool()
        start = time.perf_counter()
        strangers = find_strangers(everything, name)
        for unit in units:
            ask_unit(pool, unit, strangers, overrides, environ, ablations=ablations)
        result["benches"][name] = describe(pool)
        result["bars"] += check_bars(name, pool)
        say(f"{name}: {len(pool.queries)} queries on {len(units)} memories, {time.perf_counter() - start:.0f} s")
    say(f"{time.perf_counter() - began:.0f} s in all")
    return result


def ask_unit(
    pool: Pool,
    unit: Unit,
    strangers: Sequence[Query],
    overrides: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    ablations: bool,
) -> None:
    """Index a unit and ask its queries under every setting, and those that are none of its business by default."""
    config = load_config(NOTHING, environ, ROOT, overrides=overrides, workspaces=[unit.workspace.resolve()])
    queries = read_queries(unit.queries)
    default = search_settings(config.search)
    settings = variants(default) if ablations else {FULL: default}
    with open_index(*set_apart(config, environ), IndexProgress) as engine:
        if not engine.semantics.ready():
            raise CannotMeasure(f"there are no vectors to measure: {engine.semantics.status().reason}")
        # The default is asked first: it pays for embedding the queries, so that its cost is the real one.
        once = RememberedQueries(engine.semantics.serving())
        today = unit.now or date.today()  # noqa: DTZ011  where notes are not dated, the day does not matter
        pool.add(queries, {name: ask(engine, queries, each, today, LIMIT, once) for name, each in settings.items()})
        pool.strange += ask(engine, strangers, default, today, LIMIT)


def describe(pool: Pool) -> dict[str, Any]:
    """All figures of a benchmark."""
    report = pool.summary(FULL)
    if len(pool.asked) > 1:
        best = max(LEGS, key=lambda leg: report["variants"][leg]["line.hit@6"])
        report["beside_best_leg"] = pool.difference("line.hit@6", best, FULL)
        report["beside_decay_off"] = pool.difference("line.hit@6", DECAY_OFF, FULL)
    return report


def check_bars(bench: str, pool: Pool) -> list[dict[str, Any]]:
    found = []
    for bar in BARS:
        if bar.bench == bench:
            value = pool.value(bar.measure, bar.kind, FULL)
            found.append({**asdict(bar), **value, "passed": value["measured"] >= bar.least})
    return found


def all_held(result: dict[str, Any]) -> bool:
    """Whether every bar holds, and every benchmark is found as well as by its best leg and without decay."""
    tolerated = {"beside_best_leg": LEG_TOLERANCE, "beside_decay_off": DECAY_TOLERANCE}
    return all(bar["passed"] for bar in result["bars"]) and all(
        bench[beside]["difference"] >= -tolerance
        for bench in result["benches"].values()
        for beside, tolerance in tolerated.items()
        if beside in bench
    )


def write(result: dict[str, Any], folder: Path) -> None:
    """The tables, the numbers and the plots."""
    document = folder / "quality.md"
    document.write_text(replace_tables(document.read_text(encoding="utf-8"), result), encoding="utf-8")
    (folder / "quality.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    benches = result["benches"]
    measured = next(iter(benches.values()))["variants"]
    shown = [name for name in PLOTTED if name in measured]
    bars = {name: [bench["variants"][name]["line.hit@6"] for bench in benches.values()] for name in shown}
    (folder / "quality-legs.svg").write_text(draw_bars("hit@6 of each leg and of the whole", list(benches), bars))
    if CURVE_OF in benches:
        lines = {name: benches[CURVE_OF]["variants"][name]["curve"] for name in shown}
        title = f"Share of answers among the first k hits, {CURVE_OF}"
        (folder / "quality-curve.svg").write_text(draw_lines(title, CURVE, lines))


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
