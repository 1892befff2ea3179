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
from bench_ratios import TOLERANCE, Ratio, judge, ratios_of, table

FOLDER = Path(__file__).parents[1] / "docs/bench"
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
    verdicts = judge(baseline, arguments.stages or USUAL, measure)
    print("\n".join(table(verdicts)))
    failed = sum(verdict.fails for verdict in verdicts)
    seen = sum(verdict.measured is not None and verdict.baseline is not None for verdict in verdicts)
    print(
        f"\n{failed or 'None'} of {seen} ratios that were compared: more than {TOLERANCE:.0%} worse than the baseline."
    )
    return int(failed > 0 or not seen)


def measure(stage: str) -> dict[str, Ratio]:
    """In a process of its own: a run leaves nothing behind for the next one."""
    print(f"Measuring {stage} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        out = Path(folder) / "out.json"
        bench = [sys.executable, str(Path(__file__).with_name("bench.py")), f"--{stage}-only", *STAGES[stage]]
        subprocess.run([*bench, "--json", str(out)], check=True, stdout=subprocess.DEVNULL)
        return ratios_of(json.loads(out.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
