"""The watchers of all workspaces: exactly those that are served are watched, as they are configured."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial

from memoryd.daemon.engine import Engine
from memoryd.daemon.ground import Ground
from memoryd.daemon.watcher import Watcher


class Watchers(dict[str, Watcher]):
    """By the name of the workspace. Changed by one thread at a time; others look up, and iterate over copies."""

    def __init__(self) -> None:
        super().__init__()
        self._one = threading.Lock()
        self._ground: Ground | None = None
        self._stopped = False

    def follow(self, engine: Engine) -> None:
        """Start and stop watchers until they are those that the engine's configuration wants."""
        with self._one:
            if not self._stopped:
                self._follow(engine)

    def _follow(self, engine: Engine) -> None:
        settle_s = engine.config.index.settle_ms / 1000
        wanted = engine.workspaces
        if self._ground is None:
            with suppress(OSError):  # without it the watchers look more often
                self._ground = Ground()
        for name, watcher in list(self.items()):
            if watcher.workspace != wanted.get(name) or watcher.settle_s != settle_s:
                del self[name]
                watcher.stop()
        for name, workspace in wanted.items():
            if name not in self:
                watcher = Watcher(
                    workspace,
                    on_files=partial(engine.index_files, name),
                    on_rescan=partial(engine.look_at_disk, [name]),
                    settle_s=settle_s,
                    ground=self._ground,
                )
                watcher.start()
                self[name] = watcher

    def stop(self) -> None:
        """For good: the folder of a first fact that is learned meanwhile is served, but no longer watched."""
        with self._one:
            self._stopped = True
            for watcher in self.values():
                watcher.stop()
            if self._ground:
                self._ground.stop()
                self._ground = None
