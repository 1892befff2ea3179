"""What this process takes of the machine: memory, CPU, threads and open files."""

from __future__ import annotations

import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Footprint:
    resident_bytes: int
    cpu_s: float  # user and system, since it started
    threads: int  # Python's; those of libraries are not counted
    open_files: int
    open_files_limit: int


def read_footprint() -> Footprint:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    times = os.times()
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Footprint(
        resident_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        cpu_s=round(times.user + times.system, 2),
        threads=threading.active_count(),
        open_files=len(os.listdir("/proc/self/fd")),  # noqa: PTH208  a Path for each would open nothing but cost
        open_files_limit=limit,
    )
