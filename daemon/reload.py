"""Reading the configuration again while memoryd runs: all that can change does, or nothing does and status says why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.engine import Engine
from memoryd.daemon.model_methods import go_over
from memoryd.daemon.notify import Notifier
from memoryd.daemon.reloaded import Difference, Reloaded, compare
from memoryd.daemon.watchers import Watchers
from memoryd.jobs.retry import unforeseen
from memoryd.store.errors import ConfigInvalid, MemorydError

log = structlog.get_logger()

LoadConfig = Callable[[], Config]  # as at the start: the same file, variables and options
Follower = Callable[[Config], None]  # changes with the configuration, on the loop's thread, and cannot fail


class Reload:
    """One at a time. What follows the configuration is told after the engine has taken it on."""

    def __init__(
        self, load: LoadConfig, engine: Engine, watchers: Watchers, notifier: Notifier, followers: Sequence[Follower]
    ) -> None:
        self._load = load
        self._engine = engine
        self._watchers = watchers
        self._notifier = notifier
        self._followers = followers
        self._one = asyncio.Lock()
        self._under_way: set[asyncio.Task[Reloaded]] = set()  # the loop itself keeps no task alive

    async def run(self) -> Reloaded:
        """Once begun it is done, whether or not the client that asked for it still waits."""
        task = asyncio.ensure_future(self._run())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _run(self) -> Reloaded:
        async with self._one:
            self._notifier.reloading()
            try:
                outcome = await self._take_on()
            except Exception as failure:  # noqa: BLE001 - policy lives here: whatever it is, the daemon goes on and says so
                outcome = self._refuse(failure if isinstance(failure, MemorydError) else unforeseen(failure))
            self._engine.last_reload = outcome
            self._notifier.ready(self.headline())
            return outcome

    def _refuse(self, error: MemorydError) -> Reloaded:
        problems = error.problems if isinstance(error, ConfigInvalid) else (error.message,)
        cause = error.__cause__ if error.code == "internal" else None
        log.error("reload_refused", code=error.code, problems=list(problems), exc_info=cause)
        return Reloaded(self._engine.clock(), problems=problems, hint=error.hint)

    def headline(self) -> str:
        """One line for ``systemctl status``."""
        count = len(self._engine.workspaces)
        served = f"serving {count} workspace{'s' * (count != 1)}"
        last = self._engine.last_reload
        if last and last.problems:
            return f"{served}; the new configuration has problems, the former one is in force"
        return f"{served}; restart to apply {', '.join(last.needs_restart)}" if last and last.needs_restart else served

    async def _take_on(self) -> Reloaded:
        wanted = await asyncio.to_thread(self._load)
        difference = await asyncio.to_thread(self._reconfigure, wanted)
        for follow in self._followers:
            follow(difference.config)
        await asyncio.to_thread(self._look_anew)
        log.info("reloaded", changed=list(difference.live), needs_restart=list(difference.at_start))
        return Reloaded(self._engine.clock(), difference.live, difference.at_start)

    def _reconfigure(self, wanted: Config) -> Difference:
        with self._engine.configuring:
            running = self._engine.config
            difference = compare(running, wanted)
            self._engine.reconfigure(difference.config)
            if difference.config.embedder != running.embedder:
                go_over(self._engine, difference.config.embedder)
        return difference

    def _look_anew(self) -> None:
        self._watchers.follow(self._engine)  # before the look at the disk: nothing falls in between
        self._engine.look_at_disk()
