"""The whole machine on one screen: what is started, in which order, and how it is stopped in reverse."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.configured_models import ConfiguredModels
from memoryd.daemon.engine import Engine
from memoryd.daemon.limits import Limits
from memoryd.daemon.methods import Methods
from memoryd.daemon.notify import Notifier, listen_fds
from memoryd.daemon.paths import Paths
from memoryd.daemon.server import Server
from memoryd.daemon.watcher import Watcher

log = structlog.get_logger()

ANSWER_SECONDS = 1.0  # for requests in flight when memoryd is told to stop
LANE_SECONDS = 3.0  # for the lanes to reach a boundary

WhenServing = Callable[[], Awaitable[None]]


async def serve(config: Config, paths: Paths, when_serving: WhenServing | None = None) -> None:
    """Run the daemon until it is told to stop."""
    stop = _stop_signals()
    notifier = Notifier(os.environ)
    inherited = listen_fds(os.environ, os.getpid())

    engine = Engine(config, paths, embedder_loader(config, paths.models_dir))
    watchers: dict[str, Watcher] = {}
    methods = Methods(engine, watchers)
    server = Server(
        methods.table(),
        socket_path=paths.socket,
        listener=inherited[0] if inherited else None,
        limits=_limits(config),
        on_request=_log_request,
        on_error=_log_error,
    )
    try:
        await server.start()  # first of all: it sets the umask for a moment, and no other thread may run then
        methods.observe(server)
        for workspace in engine.workspaces.values():
            watchers[workspace.name] = Watcher(
                workspace,
                on_files=partial(engine.index_files, workspace.name),
                on_rescan=partial(engine.look_at_disk, [workspace.name]),
                settle_s=config.index.settle_ms / 1000,
            )
            watchers[workspace.name].start()  # before the first look at the disk: nothing falls in between
        engine.start()
        log.info("serving", socket=str(paths.socket), workspaces=list(engine.workspaces), pid=os.getpid())
        notifier.ready(f"serving {len(engine.workspaces)} workspaces")
        beside = [asyncio.ensure_future(_tell_alive(notifier, engine))]
        if when_serving:
            beside.append(asyncio.ensure_future(when_serving()))

        await stop.wait()

        for task in beside:
            task.cancel()
    finally:
        notifier.stopping("finishing the work in hand")
        log.info("stopping")
        cut_off = await server.stop(ANSWER_SECONDS)
        for watcher in watchers.values():
            watcher.stop()
        late = engine.stop(LANE_SECONDS)
        log.info("stopped", requests_cut_off=cut_off, lanes_cut_off=late)


async def _tell_alive(notifier: Notifier, engine: Engine) -> None:
    """Keep the service manager's watchdog quiet for as long as this loop turns and the lanes run."""
    while notifier.watchdog_s is not None:
        if engine.worker.alive():
            notifier.watchdog()
        await asyncio.sleep(notifier.watchdog_s / 2)


def embedder_loader(config: Config, models_dir: Path) -> ConfiguredModels:
    """How the configured model is brought into memory, installed first if need be."""
    return ConfiguredModels(config.embedder, models_dir)


def _stop_signals() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; a second one ends the process where it stands."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return stop


def _limits(config: Config) -> Limits:
    server = config.server
    return Limits(
        max_request_bytes=server.max_request_bytes,
        max_connections=server.max_connections,
        max_in_flight=server.max_in_flight,
        request_timeout_s=server.request_timeout_s,
        idle_timeout_s=server.idle_timeout_s or None,
    )


def _log_request(method: str, took_ms: float, error_code: str | None, bytes_in: int, bytes_out: int) -> None:
    # A client's mistake is the client's to read; only our own is a warning here.
    level = log.debug if error_code is None else log.warning if error_code == "internal" else log.info
    level("request", method=method, took_ms=round(took_ms, 2), error=error_code, bytes_in=bytes_in, bytes_out=bytes_out)


def _log_error(method: str, exc: Exception) -> None:
    log.error("method_failed", method=method, exc_info=exc)
