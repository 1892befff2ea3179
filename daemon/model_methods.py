"""What the socket answers about models: going over to another one, back again, and giving back its disk space."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from memoryd.daemon.config import Embedder as Settings
from memoryd.daemon.configured_models import ConfiguredModels, changed_settings, choose_provider, made_with
from memoryd.daemon.dispatch import Method
from memoryd.daemon.engine import Engine
from memoryd.daemon.params import parse_params
from memoryd.daemon.requests import ModelPruneRequest, ModelRollbackRequest, ModelUseRequest
from memoryd.store.errors import MemorydError
from memoryd.store.generations import Generation
from memoryd.store.job_rows import job_key
from memoryd.store.quarantine import folder_bytes

log = structlog.get_logger()

_POLL_S = 0.05


class ModelMethods:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self) -> dict[str, Method]:
        return {
            "model.use": Method(self.use),
            "model.rollback": Method(self.roll_back),
            "model.prune": Method(self.prune, timeout_s=600),
        }

    def use(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Begin to fill the model's generation; what is searched now is searched until that is done."""
        request = parse_params(ModelUseRequest, params)
        engine = self._engine
        provider = request.provider or engine.config.embedder.provider
        settings = replace(choose_provider(engine.config.embedder, provider), model=request.model)
        if request.base_url is not None:
            settings = replace(settings, base_url=request.base_url)
        serving = engine.semantics.status().model
        models = go_over(engine, settings)
        return {"model": request.model, "provider": models.choice.provider, "serving": serving}

    def roll_back(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Search the generation before again, or go on with this one if another was being filled."""
        parse_params(ModelRollbackRequest, params)
        engine = self._engine
        with engine.configuring:
            before = engine.semantics.status()
            generation = engine.semantics.roll_back()
            settings = made_with(engine.config.embedder, generation.recipe)
            changed = changed_settings(engine.config.embedder, settings)
            engine.config = replace(engine.config, embedder=settings)
        return {
            "model": generation.model,
            "fingerprint": generation.fingerprint,
            "from": before.model,
            "cancelled": generation.fingerprint == before.fingerprint,
            "settings": changed,
        }

    async def prune(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Give back the disk space of every generation that is neither searched nor filled."""
        parse_params(ModelPruneRequest, params)
        engine = self._engine
        known, held = await asyncio.to_thread(self._begin_prune)
        while "prune" in await asyncio.to_thread(engine.queue.waiting_kinds):
            await asyncio.sleep(_POLL_S)
        return await asyncio.to_thread(self._report_prune, known, held)

    def _begin_prune(self) -> tuple[list[Generation], int]:
        found = list(self._engine.generations.all()), self._bytes()
        self._engine.queue.enqueue("prune")
        return found

    def _report_prune(self, known: list[Generation], held: int) -> dict[str, Any]:
        engine = self._engine
        if failure := next((each for each in engine.queue.failures() if each.kind == "prune"), None):
            raise MemorydError(f"{job_key('prune')} failed: {failure.reason}", hint=failure.hint)
        left = {generation.id for generation in engine.generations.all()}
        return {
            "removed": [
                {"model": each.model, "fingerprint": each.fingerprint} for each in known if each.id not in left
            ],
            "bytes": max(0, held - self._bytes()),
        }

    def _bytes(self) -> int:
        return folder_bytes(self._engine.paths.vectors_dir) + self._engine.cache.bytes_on_disk()


def go_over(engine: Engine, settings: Settings) -> ConfiguredModels:
    """Have the notes embedded by the model of these settings; until that is done the one before is searched by."""
    models = ConfiguredModels(settings, engine.paths.models_dir, clock=engine.clock)
    with engine.configuring:
        engine.config = replace(engine.config, embedder=settings)
        engine.semantics.use(models)
    log.info("model_chosen", model=settings.model, provider=settings.provider)
    return models
