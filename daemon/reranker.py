"""The configured reranker. Nothing is fetched or loaded before a query wants it."""

from __future__ import annotations

from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.jobs.models.rerankers import install_reranker, installed_reranker
from memoryd.jobs.rerankers.late import LateReranker
from memoryd.store.errors import ModelMissing
from memoryd.store.protocols import Reranker


def make_reranker(config: Config, models_dir: Path) -> LateReranker:
    spec, may_install, threads = config.search.rerank.model, config.embedder.auto_install, config.embedder.threads

    def load() -> Reranker:
        path = installed_reranker(models_dir, spec)
        if path is None and may_install:
            path = install_reranker(spec, models_dir)
        if path is None:
            raise ModelMissing(f"The reranker {spec} is not installed", hint=f"Run 'memoryd model install {spec}'")
        if path.suffix == ".gguf":
            from memoryd.jobs.rerankers.llama import LlamaReranker

            return LlamaReranker(path, threads=threads)
        from memoryd.jobs.rerankers.onnx import OnnxReranker

        return OnnxReranker(path, threads=threads)

    return LateReranker(load)
