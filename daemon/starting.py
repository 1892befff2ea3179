"""Starting the daemon for a client that found none: as the user's service where there is one, else as a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from memoryd.daemon.client import Client
from memoryd.daemon.config import Config
from memoryd.daemon.paths import Paths, ensure_private, xdg_folder
from memoryd.store.errors import MemorydError, NotRunning

UNIT = "memoryd.service"
_PATIENCE_S = 60.0
_GRACE_S = 5.0
_POLL_S = 0.05
_SHOWN_CHARS = 500  # of what it said last
_LONGEST_LOG = 1_000_000


def start_daemon(config: Config, paths: Paths, config_file: Path | None) -> None:
    """Returns when the daemon answers. Raises ``NotRunning`` with what it said where it does not.

    The process outlives its starter and writes its log beside the index: warnings alone unless the configuration says
    otherwise, for nobody turns that log over. Of several that are started at the same time, one gets the data folder;
    the others end, and their starters find the one.
    """
    if _answers(paths):
        return  # whoever asked before has started it; another would take its place as soon as it is stopped
    log = paths.data_dir / "started.log"
    ensure_private(paths.data_dir)
    level = {} if "log.level" in config.origin else {"MEMORYD_LOG__LEVEL": "warning"}
    with log.open("ab") as output:  # another that runs already may write to it too
        if output.tell() > _LONGEST_LOG:
            output.truncate(0)
        begins = output.tell()
        process = subprocess.Popen(
            _command(config_file),
            env=os.environ | level,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline, gave_up = time.monotonic() + _PATIENCE_S, False
    while not _answers(paths):
        if process.poll() and not gave_up:  # perhaps because another one is about to answer
            gave_up = True
            deadline = time.monotonic() + _GRACE_S
        if time.monotonic() > deadline:
            raise NotRunning("memoryd was started, but does not answer.", hint=_last_words(log, begins))
        time.sleep(_POLL_S)


def _command(config_file: Path | None) -> list[str]:
    unit = xdg_folder("XDG_CONFIG_HOME", os.environ) / "systemd/user" / UNIT
    if config_file is None and unit.exists() and (systemctl := shutil.which("systemctl")):
        return [systemctl, "--user", "start", UNIT]
    chosen = ["--config", str(config_file)] if config_file else []
    return [sys.executable, "-m", "memoryd.daemon.cli", "run", *chosen]


def _answers(paths: Paths) -> bool:
    try:
        with Client(paths.socket, timeout=5.0) as client:
            client.call("ping")
    except MemorydError:
        return False
    return True


def _last_words(log: Path, begins: int) -> str:
    said = log.read_bytes()[begins:].decode(errors="replace").strip()[-_SHOWN_CHARS:]
    return f"It said: {said}" if said else f"Its log is {log}; 'memoryd run' shows it in the foreground."
