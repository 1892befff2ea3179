"""The real daemon as a real process, in folders of its own, and the command line beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryd.daemon.client import Client
from memoryd.store.errors import MemorydError
from tests.support.waiting import PATIENCE_S, eventually

PROGRAM = Path(sys.executable).with_name("memoryd")


@dataclass
class Machine:
    """A user's folders: configuration, data, socket and one workspace. Models are shared with the machine's own."""

    folder: Path
    runtime: Path  # short: a socket's path has at most 107 bytes
    models: Path
    env: dict[str, str] = field(default_factory=dict)  # over the defaults, as MEMORYD_* variables
    through: tuple[str, ...] = ()  # a command that the daemon is started by

    @property
    def root(self) -> Path:
        return self.folder / "notes"

    @property
    def data(self) -> Path:
        return self.folder / "data/memoryd"

    @property
    def socket(self) -> Path:
        return self.runtime / "memoryd/memoryd.sock"

    @property
    def config_file(self) -> Path:
        return self.folder / "config/memoryd/config.toml"

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        return kept | {
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "MEMORYD_PATHS__CACHE": str(self.models.parent),
            "MEMORYD_WORKSPACE": str(self.root),
            "PYTHONWARNINGS": "default",
        } | self.env  # fmt: skip

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    # -- the command line ---------------------------------------------------------------------------------

    def run(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *words],
            env=self.environment() | env,
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def json(self, *words: str) -> Any:
        """What a command prints with --json, alone on stdout."""
        return json.loads(self.run(*words, "--json").stdout)

    # -- the daemon ---------------------------------------------------------------------------------------

    @contextmanager
    def daemon(self, *words: str, cwd: Path | None = None) -> Iterator[Daemon]:
        daemon = self.start(*words, cwd=cwd)
        try:
            daemon.wait_until_it_answers()
            yield daemon
            if daemon.process.poll() is None:
                assert daemon.stop() == 0, daemon.log()
        finally:
            daemon.kill()
        assert "Traceback" not in daemon.log(), daemon.log()

    def start(self, *words: str, cwd: Path | None = None) -> Daemon:
        log = self.folder / "log"
        with log.open("ab") as stderr:
            process = subprocess.Popen(
                [*self.through, PROGRAM, "run", *words],
                env=self.environment(),
                cwd=cwd or self.folder,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
            )
        return Daemon(self, process, log, log.stat().st_size)


@dataclass
class Daemon:
    machine: Machine
    process: subprocess.Popen[bytes]
    _log: Path
    _from: int  # where this daemon's part of the log begins

    def log(self) -> str:
        return self._log.read_bytes()[self._from :].decode(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if line.get("event") == name]

    def call(self, method: str, **params: Any) -> Any:
        with Client(self.machine.socket, timeout=PATIENCE_S) as client:
            return client.call(method, params)

    def wait_until_it_answers(self) -> None:
        def answers() -> bool:
            assert self.process.poll() is None, self.log()
            try:
                return bool(self.call("ping")["pong"])
            except MemorydError:
                return False

        eventually(answers, what="the daemon answers")

    def settle(self) -> None:
        """Until nothing is left to do, as it says itself."""
        self.call("index")
        eventually(lambda: self.call("status", brief=True)["current"])

    def found(self, query: str) -> list[str]:
        """The paths of the hits that have all words of the query."""
        words = query.casefold().split()
        hits = self.call("search", query=query, limit=100)["results"]
        return [hit["path"] for hit in hits if all(word in hit["snippet"].casefold() for word in words)]

    def wait_for(self, query: str, *paths: str) -> None:
        eventually(lambda: set(self.found(query)) == set(paths), what=f"{query!r} is found in {paths}")

    def health(self) -> dict[str, Any]:
        """Reasons by code."""
        return {reason["code"]: reason for reason in self.call("status")["health"]["reasons"]}

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)


@contextmanager
def make_machine(folder: Path, models: Path) -> Iterator[Machine]:
    runtime = Path(tempfile.mkdtemp(prefix="memoryd-run-", dir="/tmp"))
    machine = Machine(folder, runtime, models)
    machine.root.mkdir()
    try:
        yield machine
    finally:
        shutil.rmtree(runtime, ignore_errors=True)
