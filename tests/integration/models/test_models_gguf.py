"""A file is judged before llama.cpp sees it."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from memoryd.jobs.embedders.llama import LlamaEmbedder
from memoryd.jobs.models.gguf_file import GgufFile, verify_gguf
from memoryd.store.errors import ModelCorrupt, ModelMissing


def test_default_model_tells_its_facts(default_model: Path) -> None:
    assert verify_gguf(default_model) == GgufFile("bert", "mean", 384, 512, strips_accents=True, quantized=False)


@pytest.mark.parametrize(("pooling", "name"), [(1, "mean"), (2, "cls"), (3, "last")])
def test_generative_architecture_with_pooling_is_an_embedding_model(
    make_gguf: Callable[..., Path], pooling: int, name: str
) -> None:
    assert verify_gguf(make_gguf("qwen3", pooling=pooling)).pooling == name


def test_encoder_that_names_no_pooling_is_pooled_by_the_mean(make_gguf: Callable[..., Path]) -> None:
    assert verify_gguf(make_gguf("bert", pooling=None)).pooling == "mean"


@pytest.mark.parametrize(("architecture", "pooling"), [("llama", None), ("llama", 0), ("bert", 4)])
def test_model_that_makes_no_embeddings_is_refused(
    make_gguf: Callable[..., Path], architecture: str, pooling: int | None
) -> None:
    with pytest.raises(ModelCorrupt) as caught:
        verify_gguf(make_gguf(architecture, pooling=pooling))
    assert "makes no embeddings" in caught.value.message
    assert "memoryd model list" in (caught.value.hint or "")


@pytest.mark.parametrize("keep", [0, 3, 4, 20, 400, -1])
def test_truncated_file_is_refused(make_gguf: Callable[..., Path], keep: int) -> None:
    path = make_gguf()
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelCorrupt) as caught:
        LlamaEmbedder(path)
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"", b"<html>sign in</html>" * 99, b"GGUF" + b"\xff" * 400, b"GGUF\3\0\0\0"])
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelCorrupt) as caught:
        verify_gguf(path)
    assert str(path) in caught.value.message


def test_flipped_header_bytes_never_raise_anything_else(make_gguf: Callable[..., Path]) -> None:
    path = make_gguf()
    whole = path.read_bytes()
    dice = random.Random(7)
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            damaged[dice.randrange(1900)] = dice.randrange(256)
        path.write_bytes(damaged)
        with suppress(ModelCorrupt):
            verify_gguf(path)


def test_whole_file_that_llama_cannot_run_is_corrupt(make_gguf: Callable[..., Path]) -> None:
    with pytest.raises(ModelCorrupt) as caught:
        LlamaEmbedder(make_gguf())
    assert "llama.cpp" in caught.value.message
    assert caught.value.hint


def test_missing_file_has_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing) as caught:
        LlamaEmbedder(tmp_path / "model.gguf")
    assert "memoryd model install" in (caught.value.hint or "")


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelCorrupt):
        verify_gguf(tmp_path)
