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
from memoryd.daemon.descriptors import make_room
from memoryd.daemon.engine import Engine
from memoryd.daemon.heartbeat import Heartbeat
from memoryd.daemon.limits import Limits
from memoryd.daemon.logs import configure_logs
from memoryd.daemon.methods import Methods
from memoryd.daemon.notify import Notifier, listen_fds
from memoryd.daemon.own_version import own_version
from memoryd.daemon.paths import Paths
from memoryd.daemon.reload import LoadConfig, Reload
from memoryd.daemon.server import Server
from memoryd.daemon.watchers import Watchers
from memoryd.jobs.garbage import look_seldom
from memoryd.jobs.native_memory import keep_heap_small

log = structlog.get_logger()

ANSWER_SECONDS = 1.0  # for requests in flight when memoryd is told to stop
LANE_SECONDS = 3.0  # for the lanes to reach a boundary

WhenServing = Callable[[], Awaitable[None]]


async def serve(config: Config, paths: Paths, load: LoadConfig, when_serving: WhenServing | None = None) -> None:
    """Run the daemon until it is told to stop; ``load`` reads the configuration again."""
    keep_heap_small()
    look_seldom()
    stop, hangup = _stop_signals(), _hangup_signal()
    notifier = Notifier(os.environ)
    inherited = listen_fds(os.environ, os.getpid())

    engine = Engine(config, paths, embedder_loader(config, paths.models_dir))
    watchers = Watchers()
    engine.on_served = partial(watchers.follow, engine)
    methods = Methods(engine, watchers)
    server = Server(
        methods.table(),
        socket_path=paths.socket,
        listener=inherited[0] if inherited else None,
        limits=_limits(config),
        on_request=partial(_note_request, engine),
        on_error=_log_error,
    )
    reload = Reload(
        load,
        engine,
        watchers,
        notifier,
        followers=[methods.live.reconfigure, lambda wanted: server.set_limits(_limits(wanted)), _set_logs],
    )
    methods.reload_by(reload.run)
    try:
        await server.start()  # first of all: it sets the umask for a moment, and no other thread may run then
        methods.observe(server)
        watchers.follow(engine)  # before the first look at the disk: nothing falls in between
        engine.start()
        workspaces = list(engine.workspaces)
        log.info("serving", version=own_version(), socket=server.address, workspaces=workspaces, pid=os.getpid())
        notifier.ready(reload.headline())
        heartbeat = Heartbeat(notifier, engine.worker, watchers, server.address)
        beside = [asyncio.ensure_future(heartbeat.beat()), asyncio.ensure_future(_reload_when_asked(reload, hangup))]
        if when_serving:
            beside.append(asyncio.ensure_future(when_serving()))

        await stop.wait()

        for task in beside:
            task.cancel()
    finally:
        notifier.stopping("finishing the work in hand")
        log.info("stopping")
        cut_off = await server.stop(ANSWER_SECONDS)
        watchers.stop()
        late = engine.stop(LANE_SECONDS)
        log.info("stopped", requests_cut_off=cut_off, lanes_cut_off=late)


async def _reload_when_asked(reload: Reload, hangup: asyncio.Event) -> None:
    while True:
        await hangup.wait()
        hangup.clear()  # before the reading: one that comes meanwhile is another request
        await reload.run()


def _set_logs(config: Config) -> None:
    configure_logs(config.log.level, config.log.format, include_text=config.log.include_text)


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


def _hangup_signal() -> asyncio.Event:
    """Set by SIGHUP: the configuration is to be read again."""
    hangup = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
    return hangup


def _limits(config: Config) -> Limits:
    server = config.server
    fitting = make_room(server.max_connections)
    if fitting < server.max_connections:
        log.warning("connections_limited", configured=server.max_connections, fitting=fitting, hint="Raise ulimit -n")
    return Limits(
        max_request_bytes=server.max_request_bytes,
        max_connections=fitting,
        max_in_flight=server.max_in_flight,
        request_timeout_s=server.request_timeout_s,
        arrival_timeout_s=server.arrival_timeout_s,
        idle_timeout_s=server.idle_timeout_s or None,
    )


def _note_request(
    engine: Engine, method: str, took_ms: float, error_code: str | None, bytes_in: int, bytes_out: int
) -> None:
    engine.measures.note_request(method, took_ms, error_code)
    # A client's mistake is the client's to read; only our own is a warning here.
    level = log.debug if error_code is None else log.warning if error_code == "internal" else log.info
    level("request", method=method, took_ms=round(took_ms, 2), error=error_code, bytes_in=bytes_in, bytes_out=bytes_out)


def _log_error(method: str, exc: Exception) -> None:
    log.error("method_failed", method=method, exc_info=exc)
