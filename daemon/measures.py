"""What the daemon remembers of its own speed: counters since the start, and rings of the last minutes.

Fed by the socket, the worker and the lanes, read by ``status``. Everything here is bounded, and nothing of what
was asked or found is kept.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from memoryd.daemon.footprint import read_footprint
from memoryd.store.protocols import Clock

WINDOW_S: Final = 300.0  # of which percentiles are told
STEP_S: Final = 2.0  # of one bar of the throughput …
STEPS: Final = 60  # … and how many there are
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds, for a histogram
_KEPT_DURATIONS: Final = 2048  # of each method
_KEPT_SEARCHES: Final = 20


@dataclass(frozen=True, slots=True)
class SearchTiming:
    """How long one query took, and where. Not what it asked."""

    at: float
    took_ms: float
    stages: Mapping[str, float]  # milliseconds
    results: int
    degraded: bool


@dataclass(slots=True)
class _Requests:
    """What is known of one method's requests."""

    errors: dict[str, int] = field(default_factory=dict)  # by code
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))  # the last one: longer than all
    recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_KEPT_DURATIONS))  # at, ms


@dataclass(slots=True)
class _Jobs:
    done: int = 0
    failed: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Written:
    files: int = 0  # whose words were indexed or forgotten
    passages: int = 0  # whose vectors were written
    computed: int = 0  # of those, how many were not in the cache


class Measures:
    """Any thread may note; each note takes microseconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock()
        self._lock = threading.Lock()
        self._requests: dict[str, _Requests] = {}
        self._jobs: dict[str, _Jobs] = {}
        self._searches: deque[SearchTiming] = deque(maxlen=_KEPT_SEARCHES)
        self._written = _Written()
        self._steps: dict[int, _Written] = {}  # by number of the step since 1970

    def note_request(self, method: str, took_ms: float, error_code: str | None) -> None:
        """A request was answered. Methods are the server's own names, so there are few."""
        with self._lock:
            requests = self._requests.setdefault(method, _Requests())
            if error_code is not None:
                requests.errors[error_code] = requests.errors.get(error_code, 0) + 1
            requests.seconds += took_ms / 1000
            requests.buckets[bisect_left(BUCKETS, took_ms / 1000)] += 1
            requests.recent.append((self._clock(), took_ms))

    def note_search(self, took_ms: float, stages: Mapping[str, float], results: int, *, degraded: bool) -> None:
        with self._lock:
            self._searches.append(SearchTiming(self._clock(), took_ms, dict(stages), results, degraded))

    def note_jobs(self, kind: str, count: int, seconds: float, facts: Mapping[str, Any] | None) -> None:
        """Jobs were done, with these facts; without any, they failed."""
        with self._lock:
            jobs = self._jobs.setdefault(kind, _Jobs())
            jobs.seconds += seconds
            if facts is None:
                jobs.failed += count
            else:
                jobs.done += count
                changed = ("indexed", "forgotten")  # of one job it is the outcome, of several how many
                self._note_written(files=sum(facts.get(how, 0) + (facts.get("outcome") == how) for how in changed))

    def note_vectors(self, passages: int, computed: int) -> None:
        """Vectors were written; ``computed`` of them were not in the cache."""
        with self._lock:
            self._note_written(passages=passages, computed=computed)

    def _note_written(self, *, files: int = 0, passages: int = 0, computed: int = 0) -> None:
        now = int(self._clock() // STEP_S)
        for written in (self._written, self._steps.setdefault(now, _Written())):
            written.files += files
            written.passages += passages
            written.computed += computed
        for step in [step for step in self._steps if not now - STEPS < step <= now]:
            del self._steps[step]

    def report(self) -> dict[str, Any]:
        """Everything, as ``status`` shows it, with what the process takes of the machine now."""
        footprint = asdict(read_footprint())
        with self._lock:
            now = self._clock()
            last = int(now // STEP_S)
            steps = [self._steps.get(step, _Written()) for step in range(last - STEPS + 1, last + 1)]
            return {
                "since": _iso(self._since),
                "window_s": WINDOW_S,
                "requests": {name: _describe(found, now) for name, found in sorted(self._requests.items())},
                "last_searches": [{**asdict(search), "at": _iso(search.at)} for search in reversed(self._searches)],
                "jobs": {kind: asdict(jobs) for kind, jobs in sorted(self._jobs.items())},
                "written": asdict(self._written),
                "throughput": {
                    "step_s": STEP_S,
                    "files": [step.files for step in steps],
                    "passages": [step.passages for step in steps],
                },
                "process": footprint,
            }


def _describe(requests: _Requests, now: float) -> dict[str, Any]:
    recent = sorted(took for at, took in requests.recent if at > now - WINDOW_S)
    bounds = [*(f"{bound:g}" for bound in BUCKETS), "+Inf"]
    cumulative = [sum(requests.buckets[: place + 1]) for place in range(len(bounds))]
    return {
        "total": cumulative[-1],
        "errors": dict(sorted(requests.errors.items())),
        "seconds": round(requests.seconds, 6),
        "in_window": len(recent),
        **{f"p{share}_ms": percentile(recent, share) for share in (50, 95, 99)},
        "max_ms": round(recent[-1], 2) if recent else None,
        "buckets": dict(zip(bounds, cumulative, strict=True)),
    }


def percentile(ordered: Sequence[float], share: int) -> float | None:
    """The nearest-rank percentile: a duration that was really measured, never one in between."""
    return round(ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)], 2) if ordered else None


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
