"""What the default model's weights are best kept in, on this CPU: llama.cpp alone, passages a second, a query's time.

    python tools/weights_bench.py

The other files are made from the installed one. Each kind has two turns, and the better one counts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench_corpus import make_corpus, make_queries
from bench_raw import WEIGHTS, RawModel, Setting

from memoryd.daemon.config import Embedder
from memoryd.jobs.models.install import install

PASSAGES, QUERIES, TURNS = 128, 60, 2


def main() -> None:
    cache = Path(os.environ.get("MEMORYD_PATHS__CACHE") or Path.home() / ".cache/memoryd")
    model = install(Embedder().model, cache / "models")
    passages, queries = make_corpus(100).passages[:PASSAGES], make_queries(QUERIES)
    print(f"{model.name}: {len(passages)} passages, {len(queries)} queries")
    for weights in ("", *WEIGHTS):
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            setting = Setting("packed", threads, 256, brief_spin=True, weights=weights)
            rate, took = measure(RawModel(model, setting), passages, queries)
            name = weights or "as it is"
            print(f"{name:9} {threads} thread{'s' * (threads > 1):1} {rate:7.1f} passages/s {took:6.2f} ms", flush=True)


def measure(raw: RawModel, passages: Sequence[str], queries: Sequence[str]) -> tuple[float, float]:
    """Passages a second, and milliseconds for half of the queries or more."""
    try:
        rate = max(raw.embed(passages).rate for _ in range(TURNS))
        return rate, min(median(raw.embed_queries(queries)) for _ in range(TURNS))
    finally:
        raw.close()


if __name__ == "__main__":
    main()
