"""What a daemon costs that has nothing to do: its CPU time, who wakes up in it, and what its model gives back."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench_daemon import PATIENCE, Daemon

WAKES = 5  # times that the model is put to sleep and woken
REGULAR = ("schedule-clock", "watcher-")  # threads that wake up by the clock, by the beginning of their names
SLEEPY = {"MEMORYD_EMBEDDER__IDLE_UNLOAD_MINUTES": "0.01"}


class Thread(NamedTuple):
    name: str
    wakeups: int  # voluntary context switches: each is a sleep that ended
    cpu_s: float


def measure_idle(daemon: Daemon, seconds: float) -> dict[str, Any]:
    """CPU and wake-ups over so long a time, by the names of the threads; nobody asks meanwhile."""
    daemon.client.close()
    time.sleep(1)  # the daemon notices
    before = read_threads(daemon.pid)
    time.sleep(seconds)
    after = read_threads(daemon.pid)
    none = Thread("", 0, 0.0)
    wakeups: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    for task, thread in after.items():
        wakeups[thread.name] += thread.wakeups - before.get(task, none).wakeups
        cpu[thread.name] += thread.cpu_s - before.get(task, none).cpu_s
    return {
        "seconds": seconds,
        "cpu_percent": sum(cpu.values()) / seconds * 100,
        "wakeups_a_minute": sum(wakeups.values()) * 60 / seconds,
        "others": sum(count for name, count in wakeups.items() if not name.startswith(REGULAR)),
        "threads": {
            name: {"wakeups_a_minute": count * 60 / seconds, "cpu_ms": cpu[name] * 1000}
            for name, count in wakeups.most_common()
            if count
        },
    }


def read_threads(pid: int) -> dict[str, Thread]:
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        facts = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        on_cpu = int((task / "schedstat").read_text().split()[0]) / 1e9
        found[task.name] = Thread(facts["Name"].strip(), int(facts["voluntary_ctxt_switches"]), on_cpu)
    return found


def measure_sleep(daemon: Daemon) -> dict[str, Any]:
    """The model is put to sleep and woken by a query, again and again. The daemon is a ``SLEEPY`` one."""
    awake, asleep, waking, searching = [], [], [], []
    for number in range(WAKES):
        wait_for_sleep(daemon)
        asleep.append(daemon.memory_mb("VmRSS"))
        answer = daemon.client.call("search", {"query": f"what was decided in case {number}", "explain": True})
        if answer["degraded"]:
            raise RuntimeError(f"the search is not whole: {answer['degraded']['reason']}")
        awake.append(daemon.memory_mb("VmRSS"))
        searching.append(answer["took_ms"])
        waking.append(daemon.events("model_awake")[-1]["took_ms"])
    return {
        "awake_mb": median(awake),
        "asleep_mb": median(asleep),
        "wake_ms": median(waking),
        "first_search_ms": median(searching),
    }


def wait_for_sleep(daemon: Daemon) -> None:
    deadline = time.perf_counter() + PATIENCE
    while daemon.client.call("status")["embedder"]["asleep"] is None:
        if time.perf_counter() > deadline:
            raise TimeoutError("the model does not fall asleep")
        time.sleep(0.05)
