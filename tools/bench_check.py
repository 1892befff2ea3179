"""Whether a run of the benchmark is as good as the committed one: ``make bench-check``.

Stages are measured as ``make bench`` does, growth in the smaller memories alone, and every ratio is held against
docs/bench/baseline.json. What is more than 15 % worse fails. A machine is never quite quiet, so a stage in which a
ratio fails is measured again, twice at most, and of each ratio the best counts: noise passes, a regression comes back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_baseline import read_baseline
from bench_ratios import TOLERANCE, Ratio, best_of, compare, failing_stages, ratios_of, table

FOLDER = Path(__file__).parents[1] / "docs/bench"
AGAIN = 2
STAGES = {"daemon": [], "intake": [], "growth": ["--growth-chunks", "1000,10000"], "load": []}
USUAL = ["daemon", "intake", "growth"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)} (default: {' '.join(USUAL)})"
    )
    parser.add_argument("--baseline", type=Path, default=FOLDER, help="the folder that has baseline.json")
    parser.add_argument("--growth-chunks", metavar="N,N,…", help="sizes of the larger memories")
    arguments = parser.parse_args()
    if unknown := set(arguments.stages) - set(STAGES):
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    if arguments.growth_chunks:
        STAGES["growth"] = ["--growth-chunks", arguments.growth_chunks]
    baseline = read_baseline(arguments.baseline)
    due = arguments.stages or USUAL
    measured: dict[str, Ratio] = {}
    for turn in range(1 + AGAIN):
        for stage in due:
            print(f"Measuring {stage}{' again' if turn else ''} …", file=sys.stderr, flush=True)
            measured = best_of(measured, measure(stage))
        verdicts = compare(baseline, measured)
        due = failing_stages(verdicts)
        if not due:
            break
    failed = [verdict for verdict in verdicts if verdict.fails]
    print("\n".join(table(verdicts)))
    seen = sum(verdict.measured is not None and verdict.baseline is not None for verdict in verdicts)
    words = f"{len(failed)} of {seen} ratios are more than {TOLERANCE:.0%} worse than the baseline"
    print(
        f"\n{words}, the best of {turn + 1} runs." if failed else f"\nNone of {seen} ratios is {TOLERANCE:.0%} worse."
    )
    return int(bool(failed) or not seen)


def measure(stage: str) -> dict[str, Ratio]:
    """In a process of its own: a run leaves nothing behind for the next one."""
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        out = Path(folder) / "out.json"
        bench = [sys.executable, str(Path(__file__).with_name("bench.py")), f"--{stage}-only", *STAGES[stage]]
        subprocess.run([*bench, "--json", str(out)], check=True, stdout=subprocess.DEVNULL)
        return ratios_of(json.loads(out.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
