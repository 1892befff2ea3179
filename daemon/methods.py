"""What the socket answers: each method's parameters in, the object that the command line prints out."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from memoryd.daemon.dispatch import Method
from memoryd.daemon.document_methods import DocumentMethods
from memoryd.daemon.engine import Engine
from memoryd.daemon.healed import again_if_healed
from memoryd.daemon.ingest_methods import IngestMethods
from memoryd.daemon.introduction import introduce
from memoryd.daemon.limits import Limits
from memoryd.daemon.live_settings import LiveSettings
from memoryd.daemon.model_methods import ModelMethods
from memoryd.daemon.monitor import Monitor
from memoryd.daemon.openrpc import describe
from memoryd.daemon.own_version import own_version
from memoryd.daemon.params import parse_params
from memoryd.daemon.reloaded import Reloaded
from memoryd.daemon.requests import (
    CancelRequest,
    EventsSubscribeRequest,
    EventsUnsubscribeRequest,
    InitializeRequest,
    PingRequest,
    ReloadRequest,
    RpcDiscoverRequest,
    SettingsGetRequest,
    SettingsSetRequest,
    StatusRequest,
    VerifyRequest,
)
from memoryd.daemon.search_methods import SearchMethods
from memoryd.daemon.served import check_workspaces
from memoryd.daemon.server import Server
from memoryd.daemon.session import CANCEL, Session
from memoryd.daemon.status import brief_status, full_status
from memoryd.daemon.verification import verify
from memoryd.daemon.watcher import Watcher
from memoryd.store.errors import ConfigInvalid

log = structlog.get_logger()


class Methods:
    """The daemon's methods by name, over one engine."""

    def __init__(self, engine: Engine, watchers: dict[str, Watcher]) -> None:
        self._engine = engine
        self._watchers = watchers
        self.live = self._live = LiveSettings(engine.config, engine.paths.config_file)
        self.searching = SearchMethods(engine, self._live)
        self.documents = DocumentMethods(engine)
        self._server: Server | None = None
        self._reload: Callable[[], Awaitable[Reloaded]] | None = None
        self._monitor = Monitor(
            engine.events,
            pulse=lambda: (engine.queue.changes(), engine.semantics.status(), engine.worker.ledger_trouble),
            progress=lambda: brief_status(engine),
            health=lambda: full_status(engine, watchers, self._server)["health"],
        )

    def observe(self, server: Server) -> None:
        """The server that these methods answer on, for ``status`` to tell of it."""
        self._server = server

    def reload_by(self, reload: Callable[[], Awaitable[Reloaded]]) -> None:
        """How the configuration is read again, where a daemon runs that can."""
        self._reload = reload

    @classmethod
    def names(cls) -> list[str]:
        """Of every method; no engine is needed to know them."""
        return [
            *cls.__new__(cls)._own_table(),
            *SearchMethods.__new__(SearchMethods).table(),
            *DocumentMethods.__new__(DocumentMethods).table(),
            *ModelMethods.__new__(ModelMethods).table(),
            *IngestMethods.__new__(IngestMethods).table(),
        ]

    def table(self) -> dict[str, Method]:
        return {
            **self._own_table(),
            **self.searching.table(),
            **self.documents.table(),
            **ModelMethods(self._engine).table(),
            **IngestMethods(self._engine).table(),
        }

    def _own_table(self) -> dict[str, Method]:
        return {
            "initialize": Method(self.initialize),
            "ping": Method(self.ping),
            "status": Method(self.status),
            "verify": Method(self.verify, timeout_s=math.inf),
            "settings.get": Method(self.get_settings),
            "settings.set": Method(self.set_settings),
            "reload": Method(self.reload, timeout_s=math.inf),
            "events.subscribe": Method(self.subscribe, session=True),
            "events.unsubscribe": Method(self.unsubscribe, session=True),
            CANCEL: Method(self.cancel, session=True),
            "rpc.discover": Method(self.discover),
        }

    async def initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(InitializeRequest, params)
        limits = self._server.limits if self._server else Limits()
        return introduce(request, self.table(), limits, self._engine.events.queue)

    async def ping(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(PingRequest, params)
        return {"pong": True, "version": own_version(), "pid": os.getpid()}

    @again_if_healed
    def status(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if parse_params(StatusRequest, params).brief:
            return brief_status(self._engine)
        return full_status(self._engine, self._watchers, self._server, self._live.changes())

    def verify(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(VerifyRequest, params)
        return verify(self._engine, check_workspaces(request.workspace, self._engine.workspaces), repair=request.repair)

    def get_settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(SettingsGetRequest, params)
        return self._live.describe()

    def set_settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        request = parse_params(SettingsSetRequest, params)
        self._live.change(request.settings or {}, reset=request.reset, persist=request.persist)
        described = self._live.describe()
        changed = {key: change["live"] for key, change in described["changed"].items()}
        log.info("settings_changed", persisted=request.persist, changed=changed)
        return described

    async def reload(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(ReloadRequest, params)
        if self._reload is None:
            raise ConfigInvalid(("this memoryd cannot read its configuration again",), hint="Restart memoryd")
        outcome = await self._reload()
        if outcome.problems:
            hint = f"The former configuration is in force. {outcome.hint or ''}".rstrip()
            raise ConfigInvalid(outcome.problems, hint=hint)
        return {"changed": list(outcome.changed), "needs_restart": list(outcome.needs_restart)}

    async def subscribe(self, params: Mapping[str, Any], session: Session) -> dict[str, Any]:
        request = parse_params(EventsSubscribeRequest, params)
        names = check_workspaces(request.workspace, self._engine.workspaces)
        subscription = self._engine.events.subscribe(request.events, names)
        session.follow(self._engine.events, subscription)
        self._monitor.tell_all()
        return {"events": list(subscription.kinds), "queue": self._engine.events.queue}

    async def unsubscribe(self, params: Mapping[str, Any], session: Session) -> dict[str, Any]:
        parse_params(EventsUnsubscribeRequest, params)
        followed = session.subscription
        session.unfollow()
        return {"events": list(followed.kinds) if followed else []}

    async def cancel(self, params: Mapping[str, Any], session: Session) -> None:
        session.cancel(parse_params(CancelRequest, params).id)

    def discover(self, params: Mapping[str, Any]) -> dict[str, Any]:
        parse_params(RpcDiscoverRequest, params)
        return describe(self.table())
