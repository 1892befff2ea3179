"""``memoryd status --prometheus``: the status as metrics, in Prometheus' text exposition format (0.0.4).

Base units, one HELP and TYPE a family, counters that only grow while the daemon runs. For node_exporter's
textfile collector, or any scraper that runs a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]  # what follows the family's name, labels, value


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    kind: str  # gauge, counter or histogram
    doc: str
    samples: tuple[Sample, ...]


def render_metrics(status: Mapping[str, Any] | None) -> str:
    """The metrics of a status; of no daemon, that it is down."""
    families = [_one("up", "gauge", "Whether the daemon answers.", 1 if status else 0)]
    if status:
        families += [*_daemon(status), *_workspaces(status), *_stores(status), *_work(status), *_requests(status)]
    return "".join(line for family in families if family.samples for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    name = f"memoryd_{family.name}"
    yield f"# HELP {name} {_escape(family.doc)}\n"
    yield f"# TYPE {name} {family.kind}\n"
    for suffix, labels, value in family.samples:
        inside = ",".join(f'{label}="{_escape(text, quoted=True)}"' for label, text in labels.items())
        number = int(value) if float(value).is_integer() else value
        yield f"{name}{suffix}{{{inside}}} {number}\n" if inside else f"{name}{suffix} {number}\n"


def _escape(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text


def _one(name: str, kind: str, doc: str, value: float) -> Family:
    return Family(name, kind, doc, (("", {}, value),))


def _by(name: str, kind: str, doc: str, values: Iterable[tuple[Labels, float]]) -> Family:
    return Family(name, kind, doc, tuple(("", labels, value) for labels, value in values))


def _daemon(status: Mapping[str, Any]) -> Iterator[Family]:
    health, process = status["health"], status["measures"]["process"]
    codes = [reason["code"] for reason in health["reasons"]]
    states = ("ok", "indexing", "degraded")
    yield _by("info", "gauge", "The daemon's version.", [({"version": status["version"]}, 1)])
    yield _one("start_time_seconds", "gauge", "When the daemon started, in Unix time.", _unix(status["started_at"]))
    yield _by("health", "gauge", "1 for the state it is in.", [({"state": s}, s == health["state"]) for s in states])
    yield _by(
        "health_reasons",
        "gauge",
        "Why it is degraded.",
        [({"code": code}, codes.count(code)) for code in dict.fromkeys(codes)],
    )
    yield _one("process_resident_memory_bytes", "gauge", "Resident memory.", process["resident_bytes"])
    yield _one("process_cpu_seconds_total", "counter", "User and system CPU time.", process["cpu_s"])
    yield _one("process_open_fds", "gauge", "Open file descriptors.", process["open_files"])
    yield _one("process_max_fds", "gauge", "Most file descriptors that may be open.", process["open_files_limit"])
    yield _one("connections", "gauge", "Clients connected now.", status["server"]["connections"])
    yield _one("requests_in_flight", "gauge", "Requests not answered yet.", status["server"]["in_flight"])


def _workspaces(status: Mapping[str, Any]) -> Iterator[Family]:
    workspaces = status["workspaces"]

    def each(name: str, doc: str, values: list[float | None]) -> Family:
        named = zip(workspaces, values, strict=True)
        return _by(
            f"workspace_{name}",
            "gauge",
            doc,
            [({"workspace": workspace["name"]}, value) for workspace, value in named if value is not None],
        )

    yield each("available", "Whether its folder can be read.", [w["available"] for w in workspaces])
    yield each("files", "Files on disk that are to be indexed.", [w["files_on_disk"] for w in workspaces])
    yield each("documents", "Files indexed.", [w["indexed"] for w in workspaces])
    yield each("pending_files", "Files that wait to be indexed or embedded.", [w["pending"] for w in workspaces])
    yield each("failed_files", "Files that could not be indexed.", [len(w["failed"]) for w in workspaces])
    yield each(
        "skipped_files", "Files passed over, or indexed with a remark.", [w["skipped_count"] for w in workspaces]
    )
    yield each("chunks", "Chunks indexed.", [w["chunks"] for w in workspaces])
    yield each("passages", "Passages that want a vector.", [w["passages"] for w in workspaces])
    yield each("vectors", "Passages that have a vector.", [w["vectors"] for w in workspaces])
    yield each(
        "watcher_inotify",
        "Whether changes are noticed by inotify, not by polling.",
        [w["watcher"]["mode"] == "inotify" for w in workspaces],
    )


def _stores(status: Mapping[str, Any]) -> Iterator[Family]:
    stores = status["stores"]
    held = {"ledger": stores["ledger"], "embedding_cache": stores["embedding_cache"], "vectors": stores["vectors"]}
    sizes = [({"store": name}, store["bytes"]) for name, store in held.items() if store]
    yield _by("store_bytes", "gauge", "Size on disk.", sizes)
    if vectors := stores["vectors"]:
        yield _one("vector_versions", "gauge", "Versions that LanceDB keeps.", vectors["versions"])
        yield _one("vector_fragments", "gauge", "Fragments that LanceDB keeps.", vectors["fragments"])
    hold = status["embedder"]["hold"]
    works = status["embedder"]["state"] == "ready" and not (hold and hold["queries"])
    yield _one("embedder_ready", "gauge", "Whether search by meaning works.", works)


def _work(status: Mapping[str, Any]) -> Iterator[Family]:
    queue, measures = status["queue"], status["measures"]
    depths = [(kind.rpartition(" "), count) for kind, count in queue["by_kind"].items()]
    yield _by(
        "queue_jobs",
        "gauge",
        "Jobs in the queue.",
        [({"kind": kind, "state": state}, count) for (kind, _, state), count in depths],
    )
    yield _one("queue_oldest_seconds", "gauge", "How long the oldest job has waited.", queue["oldest_s"] or 0)
    outcomes = [
        ({"kind": kind, "outcome": outcome}, jobs[outcome])
        for kind, jobs in measures["jobs"].items()
        for outcome in ("done", "failed")
    ]
    yield _by("jobs_total", "counter", "Jobs that were tried.", outcomes)
    seconds = [({"kind": kind}, jobs["seconds"]) for kind, jobs in measures["jobs"].items()]
    yield _by("job_seconds_total", "counter", "Time spent on jobs that were done.", seconds)
    written = measures["written"]
    yield _one("files_indexed_total", "counter", "Files whose words were indexed or forgotten.", written["files"])
    yield _one("vectors_written_total", "counter", "Passages whose vectors were written.", written["passages"])
    yield _one("passages_embedded_total", "counter", "Passages embedded, not found in the cache.", written["computed"])


def _requests(status: Mapping[str, Any]) -> Iterator[Family]:
    requests = status["measures"]["requests"]
    errors = [
        ({"method": method, "code": code}, count)
        for method, found in requests.items()
        for code, count in found["errors"].items()
    ]
    yield _by("request_errors_total", "counter", "Requests answered with an error.", errors)
    samples: list[Sample] = []
    for method, found in requests.items():
        labels = {"method": method}
        samples += [("_bucket", {**labels, "le": bound}, count) for bound, count in found["buckets"].items()]
        samples += [("_sum", labels, found["seconds"]), ("_count", labels, found["total"])]
    yield Family(
        "request_duration_seconds",
        "histogram",
        "How long requests took, from the last byte read to the answer.",
        tuple(samples),
    )


def _unix(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()
