"""The embedder that the configuration names, and how it or an earlier one is brought up."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from memoryd.daemon.config import Embedder as Settings
from memoryd.daemon.embedding_keys import KEYED, find_own_key, key_place
from memoryd.jobs.keys import KeyPlace
from memoryd.jobs.meaning import Choice, Progress
from memoryd.jobs.models.catalogue import DEFAULT_MODEL, Model, resolve
from memoryd.jobs.models.install import install, installed, is_intact
from memoryd.store.errors import EmbedderRefused, MemorydError, ModelCorrupt, ModelMissing
from memoryd.store.model import TEXT_VERSION
from memoryd.store.protocols import Clock, Embedder

if TYPE_CHECKING:
    from memoryd.jobs.embedders.service import Service

log = structlog.get_logger()

_LOCAL = ("auto", "local")
_INGREDIENTS: Mapping[str, Any] = {  # and what they are where a recipe does not say so
    "model": "",
    "query_prefix": "",
    "document_prefix": "",
    "provider": "local",
    "base_url": "",
    "dimension": 0,
}
_KEY_SETTINGS = ("api_key_env", "api_key_file", "api_key_credential")
_ALWAYS = ("model", "query_prefix", "document_prefix")


@dataclass(slots=True)
class ConfiguredModels:
    settings: Settings
    models_dir: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = time.time
    _fallback: Settings | None = None  # what `auto` came to, where that is not the local model
    _why: str = ""

    @property
    def recipe(self) -> str:
        """Of a local model as it always was: what says no more than the default is left out."""
        used = self._fallback or self.settings
        used = replace(used, provider="local") if used.provider == "auto" else used
        made_of = {name: getattr(used, name) for name in _INGREDIENTS}
        return json.dumps({n: v for n, v in made_of.items() if n in _ALWAYS or v != _INGREDIENTS[n]})

    @property
    def off(self) -> str | None:
        if self.settings.provider != "none":
            return None
        return 'search is by words alone, as configured (embedder.provider = "none")'

    @property
    def choice(self) -> Choice:
        used = self._fallback or self.settings
        if used.provider == "none":
            return Choice("none", "as configured: by words alone")
        if used.provider in _LOCAL:
            auto = used.provider == "auto"
            return Choice("local", "auto: the local model comes first" if auto else "as configured")
        service = service_of(used)
        return Choice(used.provider, self._why or "as configured", sends_to(service))

    def former(self, recipe: str) -> ConfiguredModels:
        former = replace(made_with(self.settings, recipe), auto_install=False)
        if former.provider == "auto":
            former = replace(former, provider="local")  # as it was made, and nothing else in its place
        return replace(self, settings=former, _fallback=None, _why="")

    def load(self, progress: Progress) -> Embedder:
        if self.settings.provider not in _LOCAL:
            return self._load_remote(self.settings)
        self._fallback, self._why = None, ""
        try:
            return self._load_local(progress)
        except MemorydError as error:
            found = find_fallback(self.environ) if self.settings.provider == "auto" else None
            if found is None:
                raise
            provider, place = found
            self._why = (
                f"auto: the local model cannot be had ({error.message}), and memoryd was given a key for {provider}"
                f" ({place})"
            )
            self._fallback = replace(self.settings, provider=provider, model="", query_prefix="", document_prefix="")
            return self._load_remote(self._fallback)

    def _load_local(self, progress: Progress) -> Embedder:
        from memoryd.jobs.embedders.llama import LlamaEmbedder
        from memoryd.jobs.embedders.sleeper import Sleeper

        settings = self.settings
        entry = resolve(settings.model)
        trained = entry if isinstance(entry, Model) else None  # the catalogue knows what the model wants to see
        load = partial(
            LlamaEmbedder,
            self._find_or_install(progress),
            name=settings.model,
            threads=settings.threads,
            batch_tokens=settings.batch_tokens,
            query_prefix=settings.query_prefix or (trained.query_prefix if trained else ""),
            document_prefix=settings.document_prefix or (trained.document_prefix if trained else ""),
            text_version=TEXT_VERSION,
            dimension=settings.dimension,
        )
        return Sleeper(load, self.clock)

    def _load_remote(self, settings: Settings) -> Embedder:
        from memoryd.jobs.embedders.budget import Budget
        from memoryd.jobs.embedders.remote import RemoteEmbedder

        service = service_of(settings)
        place = key_place(settings, service.provider.variables, self.environ)
        if place is None and service.provider.needs_key:
            raise EmbedderRefused(
                f"there is no key for {settings.provider}",
                hint=f"Set {service.provider.variables[0]} where memoryd is started, or embedder.api_key_file.",
            )
        read_key = place.reader(self.environ, EmbedderRefused) if place else None
        budget = Budget(settings.daily_tokens, self.models_dir.parent / "embedding-tokens.json", self.clock)
        embedder = RemoteEmbedder(service, read_key, budget, self.clock)
        why = self.choice.why
        log.warning("embedder_is_remote", provider=settings.provider, model=service.model, host=service.host, why=why)
        return embedder

    def _find_or_install(self, progress: Progress) -> Path:
        """The model's file, whole: with a flipped bit it would be another model, and every note embedded anew."""
        settings = self.settings
        path = installed(self.models_dir, settings.model)
        if path is not None and is_intact(self.models_dir, settings.model):
            return path
        if settings.auto_install:
            return install(settings.model, self.models_dir, progress)
        hint = "Run 'memoryd model install', or set embedder.auto_install = true"
        if path is None:
            raise ModelMissing(f"The model {settings.model} is not installed", hint=hint)
        raise ModelCorrupt(f"The file of the model {settings.model} is not the one that was installed", hint=hint)


def find_fallback(environ: Mapping[str, str]) -> tuple[str, KeyPlace] | None:
    """The first service for which memoryd was given a key of its own."""
    for provider in KEYED:
        if place := find_own_key(provider, environ):
            return provider, place
    return None


def service_of(settings: Settings) -> Service:
    """The remote service that the settings name."""
    from memoryd.jobs.embedders.providers import PROVIDERS
    from memoryd.jobs.embedders.service import Service

    provider = PROVIDERS[settings.provider]
    return Service(
        provider,
        settings.base_url or provider.base_url,
        provider.model if settings.model in ("", DEFAULT_MODEL) else settings.model,
        dimension=settings.dimension,
        query_prefix=settings.query_prefix,
        document_prefix=settings.document_prefix,
        text_version=TEXT_VERSION,
        timeout_s=settings.timeout_s,
    )


def sends_to(service: Service) -> str | None:
    """The host that notes are sent to; None where that is this machine."""
    from memoryd.jobs.http import is_loopback

    return None if is_loopback(service.base_url) else service.host


def read_recipe(recipe: str) -> dict[str, Any]:
    """The settings of [embedder] that a generation was made with."""
    made_of = json.loads(recipe)
    return {name: type(default)(made_of.get(name, default)) for name, default in _INGREDIENTS.items()}


def made_with(settings: Settings, recipe: str) -> Settings:
    """The settings with which a generation's embedder was made; `auto` stays where the local model made it."""
    if not recipe:
        return settings
    made_of = read_recipe(recipe)
    if settings.provider == "auto" and made_of["provider"] == "local":
        made_of["provider"] = "auto"
    return replace(choose_provider(settings, made_of["provider"]), **made_of)


def choose_provider(settings: Settings, provider: str) -> Settings:
    """The settings with another provider: the address and the key of the one before are not for it."""
    if provider == settings.provider or settings.provider in (*_LOCAL, "none"):
        return replace(settings, provider=provider)
    return replace(settings, provider=provider, base_url="", api_key_env="", api_key_file="", api_key_credential="")


def changed_settings(settings: Settings, wanted: Settings) -> dict[str, Any]:
    """Of [embedder], what must be written down for another embedder to stay the chosen one."""
    names = (*_INGREDIENTS, *_KEY_SETTINGS)
    return {name: getattr(wanted, name) for name in names if getattr(wanted, name) != getattr(settings, name)}
