"""The rerankers that memoryd knows by name, and how any of them comes onto this disk.

A reranker is a GGUF, run by llama.cpp, or an ONNX graph with its ``tokenizer.json`` beside it, run by onnxruntime.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from memoryd.jobs.models.catalogue import HubOrigin
from memoryd.jobs.models.disk import disk_errors
from memoryd.jobs.models.download import download
from memoryd.jobs.models.gguf_file import verify_reranker
from memoryd.jobs.models.install import Progress, hub_url, ignore_progress, locked
from memoryd.store.errors import ConfigInvalid, MemorydError, ModelMissing

DEFAULT_RERANKER: Final = "ms-marco-minilm-l12-v2"


@dataclass(frozen=True, slots=True)
class RerankerModel:
    """One that can be fetched from the model hub."""

    name: str  # the value of search.rerank.model
    origin: HubOrigin
    files: tuple[str, ...]  # the model's own first
    summary: str = ""
    languages: str = ""  # empty: not known
    license: str = ""
    megabytes: int = 0  # 0: not known

    @property
    def needs_extra(self) -> bool:
        return self.files[0].endswith(".onnx")


RERANKERS: Final = (
    RerankerModel(
        DEFAULT_RERANKER,
        HubOrigin("cross-encoder/ms-marco-MiniLM-L12-v2"),
        ("onnx/model_quint8_avx2.onnx", "tokenizer.json"),
        summary="small and quick; the default",
        languages="English",
        license="Apache-2.0",
        megabytes=34,
    ),
    RerankerModel(
        "ms-marco-minilm-l6-v2",
        HubOrigin("cross-encoder/ms-marco-MiniLM-L6-v2"),
        ("onnx/model_quint8_avx2.onnx", "tokenizer.json"),
        summary="half the depth, twice as quick",
        languages="English",
        license="Apache-2.0",
        megabytes=23,
    ),
    RerankerModel(
        "bge-reranker-v2-m3",
        HubOrigin("gpustack/bge-reranker-v2-m3-GGUF"),
        ("bge-reranker-v2-m3-Q8_0.gguf",),
        summary="multilingual; for a fast CPU and a large budget",
        languages="100+ languages",
        license="Apache-2.0",
        megabytes=636,
    ),
)


def resolve_reranker(spec: str) -> RerankerModel | Path:
    """What ``search.rerank.model`` means: a name, ``hf:<org>/<repo>/<file>.gguf``, or a path (.gguf or .onnx)."""
    for model in RERANKERS:
        if spec.casefold() == model.name:
            return model
    if spec.startswith("hf:"):
        match = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)/([\w./-]+\.(?:gguf|onnx))", spec)
        if match is None or ".." in spec:
            raise ConfigInvalid(
                (f'the reranker "{spec}" is not of the form hf:<org>/<repo>/<file>.gguf',),
                hint="Write it in that form.",
            )
        words = ("tokenizer.json",) if match[2].endswith(".onnx") else ()
        return RerankerModel(spec, HubOrigin(match[1]), (match[2], *words))
    if "/" in spec or spec.endswith((".gguf", ".onnx")):
        return Path(spec).expanduser()
    near = difflib.get_close_matches(spec.casefold(), [model.name for model in RERANKERS], n=1)
    raise ConfigInvalid(
        (f'there is no reranker "{spec}"' + (f'; did you mean "{near[0]}"?' if near else ""),),
        hint="'memoryd model list' names the rerankers; hf:<org>/<repo>/<file>.gguf and a path work too.",
    )


def installed_reranker(models_dir: Path, spec: str) -> Path | None:
    """The model's own file, if all of its files are there; they appear whole or not at all."""
    target = resolve_reranker(spec)
    if isinstance(target, Path):
        return target if target.is_file() else None
    paths = _paths(models_dir, target)
    return paths[0] if all(path.is_file() for path in paths) else None


def install_reranker(spec: str, models_dir: Path, progress: Progress = ignore_progress) -> Path:
    """The model's own file, with what it needs beside it, fetched where it is not there yet."""
    target = resolve_reranker(spec)
    if isinstance(target, Path):
        if not target.is_file():
            raise ModelMissing(f"there is no file at {target}", hint="Correct search.rerank.model.")
        return target
    paths = _paths(models_dir, target)
    with disk_errors(paths[0]):
        models_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with disk_errors(paths[0]), locked(paths[0].parent, progress):
        for file, path in zip(target.files, paths, strict=True):
            if not path.is_file():
                url = hub_url(target.origin, file)
                download(url, path, sha256=None, progress=lambda done, total: progress("download", done, total))
                if path.suffix == ".gguf":
                    _keep_if_it_ranks(path)
    return paths[0]


def _keep_if_it_ranks(path: Path) -> None:
    try:
        verify_reranker(path)
    except MemorydError:
        path.unlink()
        raise


def _paths(models_dir: Path, model: RerankerModel) -> list[Path]:
    folder = models_dir / model.origin.repository.replace("/", "--")
    return [folder / PurePosixPath(file).name for file in model.files]
