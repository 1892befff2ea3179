"""A real ``memoryd run`` process under measurement, with folders of its own."""

from __future__ import annotations

import compileall
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoryd import daemon, jobs, store
from memoryd.daemon.client import Client
from memoryd.store.errors import MemorydError

MEMORYD = Path(sys.executable).with_name("memoryd")
PATIENCE = 1800.0  # seconds
LOOK_S = 0.02  # between two questions whether it answers by now: more of them would hold up what they wait for
_TICKS = os.sysconf("SC_CLK_TCK")


def keep_bytecode() -> None:
    """As pip does for what it installs. Where Python is told not to, each start would compile the sources anew."""
    for room in (daemon, jobs, store):
        compileall.compile_dir(room.__path__[0], quiet=1)


class Home:
    """The folders that a daemon needs: a workspace and everything else apart from the user's own, save the models."""

    def __init__(self, folder: Path) -> None:
        keep_bytecode()
        self.workspace = folder / "notes"
        self.data = folder / "data"
        self.socket = folder / "run" / "memoryd.sock"
        self.log = folder / "log.jsonl"
        self.environment = {
            **{
                key: value
                for key, value in os.environ.items()
                if key == "MEMORYD_PATHS__CACHE" or not key.startswith("MEMORYD_")
            },
            "XDG_CONFIG_HOME": str(folder / "config"),
            "MEMORYD_PATHS__DATA": str(self.data),
            "MEMORYD_PATHS__SOCKET": str(self.socket),
            "MEMORYD_LOG__FORMAT": "json",
            "MEMORYD_WORKSPACE": str(self.workspace),
        }


class Daemon:
    def __init__(self, home: Home, extra: dict[str, str]) -> None:
        self.home = home
        self.started = time.perf_counter()
        with home.log.open("w") as log:
            self._process = subprocess.Popen(
                [MEMORYD, "run"], env={**home.environment, **extra}, stdout=subprocess.DEVNULL, stderr=log
            )
        self.client = Client(home.socket, timeout=PATIENCE)

    def wait_for_answer(self, good: Callable[[dict[str, Any]], bool]) -> float:
        """Seconds from the start of the process until a search is answered, and well."""
        while time.perf_counter() - self.started < PATIENCE:
            try:
                if good(self.client.call("search", {"query": "decision about the database migration", "limit": 1})):
                    return time.perf_counter() - self.started
            except MemorydError:
                if self._process.poll() is not None:
                    raise ChildProcessError(f"memoryd run ended: {self.home.log.read_text()[-2000:]}") from None
            time.sleep(LOOK_S)
        raise TimeoutError("the daemon does not answer")

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mb(self, field: str) -> float:
        """A line of /proc/PID/status: VmHWM (the most ever resident), VmRSS (now)."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the daemon logged under a name."""
        lines = self.home.log.read_text().splitlines()
        return [event for line in lines if (event := json.loads(line)).get("event") == name]

    def stop(self) -> float:
        """Seconds that it took to end."""
        self.client.close()
        began = time.perf_counter()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)
        return time.perf_counter() - began

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def run_measured(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU milliseconds of a command."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ChildProcessError(f"{command} ended with {process.returncode}")
    return took * 1000, (usage.ru_utime + usage.ru_stime) * 1000
