"""The embedding model that the configuration names, and how it or an earlier one is brought into memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from memoryd.daemon.config import Embedder as Settings
from memoryd.jobs.meaning import Progress
from memoryd.jobs.models.catalogue import Model, resolve
from memoryd.jobs.models.install import install, installed, is_intact
from memoryd.store.errors import ModelCorrupt, ModelMissing
from memoryd.store.model import TEXT_VERSION
from memoryd.store.protocols import Embedder

_INGREDIENTS = ("model", "query_prefix", "document_prefix")


@dataclass(frozen=True, slots=True)
class ConfiguredModels:
    settings: Settings
    models_dir: Path

    @property
    def recipe(self) -> str:
        return json.dumps({name: getattr(self.settings, name) for name in _INGREDIENTS})

    def former(self, recipe: str) -> ConfiguredModels:
        made_of = read_recipe(recipe)
        former = replace(
            self.settings,
            model=made_of["model"],
            query_prefix=made_of["query_prefix"],
            document_prefix=made_of["document_prefix"],
            auto_install=False,
        )
        return replace(self, settings=former)

    def load(self, progress: Progress) -> Embedder:
        from memoryd.jobs.embedders.llama import LlamaEmbedder

        settings = self.settings
        entry = resolve(settings.model)
        trained = entry if isinstance(entry, Model) else None  # the catalogue knows what the model wants to see
        return LlamaEmbedder(
            self._find_or_install(progress),
            name=settings.model,
            threads=settings.threads,
            batch_tokens=settings.batch_tokens,
            query_prefix=settings.query_prefix or (trained.query_prefix if trained else ""),
            document_prefix=settings.document_prefix or (trained.document_prefix if trained else ""),
            text_version=TEXT_VERSION,
        )

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


def read_recipe(recipe: str) -> dict[str, str]:
    """The settings of [embedder] that a generation was made with."""
    made_of = json.loads(recipe)
    return {name: str(made_of.get(name, "")) for name in _INGREDIENTS}
