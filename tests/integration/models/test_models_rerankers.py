"""Rerankers come from the model hub: here a local server that speaks as the hub does."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.jobs.models.rerankers import (
    DEFAULT_RERANKER,
    RERANKERS,
    install_reranker,
    installed_reranker,
    resolve_reranker,
)
from memoryd.jobs.rerankers.onnx import OnnxReranker
from memoryd.store.errors import ConfigInvalid, DownloadFailed, ModelCorrupt, ModelMissing
from tests.support.file_server import FileServer
from tests.support.other_models import BGE_SMALL, CROSS_ENCODER, provide, provide_files


@pytest.fixture(autouse=True)
def hub(file_server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{file_server.url}/")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_graph_comes_with_its_tokenizer_and_works(
    file_server: FileServer, tmp_path: Path, other_models: Path
) -> None:
    source = provide_files(CROSS_ENCODER, other_models)
    model = RERANKERS[0]
    root = f"/{model.origin.repository}/resolve/{model.origin.revision}"
    file_server.serve(f"{root}/{model.files[0]}", (source / "model.onnx").read_bytes())
    assert installed_reranker(tmp_path, DEFAULT_RERANKER) is None
    with pytest.raises(DownloadFailed):
        install_reranker(DEFAULT_RERANKER, tmp_path)
    assert installed_reranker(tmp_path, DEFAULT_RERANKER) is None, "half of it is nothing"
    file_server.serve(f"{root}/{model.files[1]}", (source / "tokenizer.json").read_bytes())
    path = install_reranker(DEFAULT_RERANKER, tmp_path)
    assert path == installed_reranker(tmp_path, DEFAULT_RERANKER)
    reranker = OnnxReranker(path)
    assert len(reranker.score("a question", ["an answer"], float("inf"))) == 1
    asked = len(file_server.requests)
    assert install_reranker(DEFAULT_RERANKER, tmp_path) == path
    assert len(file_server.requests) == asked, "what is there is not fetched again"


def test_a_gguf_that_ranks_nothing_is_refused_and_not_kept(
    file_server: FileServer, tmp_path: Path, other_models: Path
) -> None:
    file_server.serve("/acme/tiny/resolve/main/tiny.gguf", provide(BGE_SMALL, other_models).read_bytes())
    with pytest.raises(ModelCorrupt, match="ranks nothing"):
        install_reranker("hf:acme/tiny/tiny.gguf", tmp_path)
    assert installed_reranker(tmp_path, "hf:acme/tiny/tiny.gguf") is None


def test_what_it_may_be_called(tmp_path: Path) -> None:
    assert resolve_reranker("MS-MARCO-MiniLM-L12-v2") is RERANKERS[0]
    assert resolve_reranker("~/models/x.onnx") == Path("~/models/x.onnx").expanduser()
    with pytest.raises(ConfigInvalid, match="did you mean"):
        resolve_reranker("ms-marco-minilm-l12")
    with pytest.raises(ConfigInvalid, match="not of the form"):
        resolve_reranker("hf:acme/../x.gguf")
    with pytest.raises(ModelMissing):
        install_reranker(str(tmp_path / "gone.gguf"), tmp_path)
