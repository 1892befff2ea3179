"""The benchmarks on disk, and what was measured on the units of one of them, pooled.

``<data>/<bench>/dev[/<unit>]`` holds ``workspace/``, ``queries.jsonl`` and ``unit.json``. The units of a benchmark
are pooled query by query: a unit with many queries counts for more than one with few.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from memoryd.daemon.evaluation import Asked, Query, read_queries, score, summarise
from memoryd.store.protocols import Vectors
from memoryd.store.search.bootstrap import mean_intervals
from memoryd.store.search.comparison import compare
from memoryd.store.search.metrics import first_rank, mean, percentile, wilson
from memoryd.store.search.pipeline import Semantics

CURVE = range(1, 11)
LOW_OVERLAP = "~overlap-1-low"  # queries that share few words with their answer
STRANGERS = 60  # questions of other benchmarks that are asked of each
# Whose questions a memory cannot answer: of another kind, in the same writing.
KINDS = (
    {"locomo", "locomo-merged", "longmemeval-head500"},
    {"scifact"},
    {"cranfield"},
    {"zh-cmrc2018"},
    {"zh-drcd"},
    {"ja-jaquad"},
)
WRITINGS = (KINDS[0] | KINDS[1] | KINDS[2], KINDS[3] | KINDS[4] | KINDS[5])
KEPT = ("queries", "line.hit@1", "line.hit@6", "line.hit@10", "line.recall@10", "line.ndcg@10", "doc.ndcg@10")


@dataclass(frozen=True, slots=True)
class Unit:
    """One workspace and the queries on it."""

    workspace: Path
    queries: Path
    now: date | None  # the day to pretend it is; None where notes are not dated


def find_units(data: Path, split: str = "dev") -> dict[str, list[Unit]]:
    """The units of each benchmark that has queries."""
    benches = {bench.name: list(_units(bench / split)) for bench in sorted(data.iterdir()) if bench.is_dir()}
    return {bench: units for bench, units in benches.items() if units}


def _units(folder: Path) -> Iterator[Unit]:
    for queries in sorted([*folder.glob("queries.jsonl"), *folder.glob("*/queries.jsonl")]):
        facts = json.loads((queries.parent / "unit.json").read_text(encoding="utf-8"))
        now = date.fromisoformat(facts["now"]) if facts.get("now") else None
        yield Unit(queries.parent / "workspace", queries, now)


def unpack(archive: Path, folder: Path) -> Path:
    """The benchmarks of an archive, unpacked once; corpora without queries are left out."""
    state = archive.stat()
    stamp, wanted = folder / "archive", f"{state.st_size} {state.st_mtime_ns}"
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(archive) as tar:
            members = [member for member in tar if not member.name.startswith("dev/corpus-")]
            if hasattr(tarfile, "data_filter"):  # Python 3.11.4
                tar.extraction_filter = tarfile.data_filter
            tar.extractall(folder, members)
        stamp.write_text(wanted)
    return folder / "dev"


def find_strangers(benches: Mapping[str, Sequence[Unit]], bench: str) -> list[Query]:
    """Questions to which a benchmark's memories have no answer: some of others that are about something else."""
    kind = next((kind for kind in KINDS if bench in kind), {bench})
    writing = next((writing for writing in WRITINGS if bench in writing), set[str]())
    strange = [
        query
        for name, units in sorted(benches.items())
        if name in writing - kind
        for unit in units
        for query in read_queries(unit.queries)
    ]
    step = max(1, len(strange) // STRANGERS)
    return strange[::step][:STRANGERS]


class RememberedQueries:
    """Embeds a query once for all settings that ask it; everything else is the engine's own."""

    def __init__(self, semantics: Semantics) -> None:
        self._semantics = semantics
        self._vectors: dict[str, Vectors] = {}

    def knows_query(self, text: str) -> bool:
        return text in self._vectors

    def embed_query(self, text: str) -> Vectors:
        if text not in self._vectors:
            self._vectors[text] = self._semantics.embed_query(text)
        return self._vectors[text]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._semantics, name)


@dataclass
class Pool:
    """What was asked of a benchmark and what came back under each setting, unit after unit."""

    queries: list[Query] = field(default_factory=list)
    asked: dict[str, list[Asked]] = field(default_factory=dict)
    strange: list[Asked] = field(default_factory=list)  # what came back where there is no answer

    def add(self, queries: Sequence[Query], asked: Mapping[str, Sequence[Asked]]) -> None:
        self.queries += queries
        for variant, answers in asked.items():
            self.asked.setdefault(variant, []).extend(answers)

    def summary(self, default: str) -> dict[str, Any]:
        """The default's measures, what each setting finds, and what a search costs beside its query's embedding."""
        report = summarise(self.queries, self.asked[default])
        del report["latency_ms"], report["cpu_ms"]  # of this machine, on this day
        embedding = percentile([answer.stages.get("embed", 0.0) for answer in self.asked[default]], 0.5)
        whole = percentile([answer.milliseconds for answer in self.asked[default]], 0.5)
        return {
            **report,
            "by_type": {kind: {name: row[name] for name in KEPT} for kind, row in report["by_type"].items()},
            "search_per_embedding": round(whole / embedding, 1) if embedding else None,
            "variants": {variant: self._variant(variant) for variant in self.asked},
            "silence": {
                "own": _empty(self.asked[default]),
                "own_doubted": _doubted(self.asked[default]),
                "strangers": len(self.strange),
                "strange": _empty(self.strange) if self.strange else None,
                "strange_doubted": _doubted(self.strange) if self.strange else None,
            },
        }

    def value(self, measure: str, kind: str, variant: str) -> dict[str, Any]:
        """A measure over the queries of a kind (empty: all), with its 95 % interval."""
        rows = zip(self.queries, score(self.queries, self.asked[variant]), strict=True)
        values = [row[measure] for query, row in rows if not kind or kind in query.labels]
        measured = sum(values) / len(values)
        shares = set(values) <= {0.0, 1.0}
        low, high = wilson(measured, len(values)) if shares else mean_intervals(np.array(values)[:, None])[0]
        return {"queries": len(values), "measured": round(measured, 4), "ci95": [round(low, 4), round(high, 4)]}

    def difference(self, measure: str, a: str, b: str) -> dict[str, Any]:
        """How much more B scores than A, on the same queries."""
        rows = [score(self.queries, self.asked[variant]) for variant in (a, b)]
        (found,) = compare((measure,), *rows)
        interval = [round(found.low, 4), round(found.high, 4)]
        return {"beside": a, "difference": round(found.b - found.a, 4), "ci95": interval, "verdict": found.verdict}

    def _share(self, variant: str, kind: str) -> float | None:
        """hit@6 over the queries of a kind; None where there are none."""
        has_any = any(kind in query.labels for query in self.queries)
        return self.value("line.hit@6", kind, variant)["measured"] if has_any else None

    def _variant(self, variant: str) -> dict[str, Any]:
        measures = mean(score(self.queries, self.asked[variant]))
        pairs = zip(self.queries, self.asked[variant], strict=True)
        ranks = [first_rank(query.gold, answer.hits) for query, answer in pairs]
        within = [sum(1 for rank in ranks if rank is not None and rank <= cut) / len(ranks) for cut in CURVE]
        return {
            **{name: round(measures[name], 4) for name in KEPT if name in measures},
            "curve": [round(share, 4) for share in within],
            LOW_OVERLAP: self._share(variant, LOW_OVERLAP),
        }


def _empty(asked: Sequence[Asked]) -> float:
    """The part of the answers that are empty."""
    return round(sum(not answer.hits for answer in asked) / len(asked), 4)


def _doubted(asked: Sequence[Asked]) -> float:
    """The part of the answers whose hits may not answer, as they say themselves."""
    return round(sum(answer.doubted for answer in asked) / len(asked), 4)
