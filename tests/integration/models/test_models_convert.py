"""The converted model computes what the published one does."""

from __future__ import annotations

import shutil
from pathlib import Path

import gguf
import pytest

from memoryd.jobs.embedders.llama import LlamaEmbedder
from memoryd.jobs.models.catalogue import ConvertedModel
from memoryd.jobs.models.convert import convert_bert, phantom_space
from memoryd.jobs.models.disk import hash_file
from memoryd.store.errors import ModelCorrupt
from tests.support.bert_reference import BertReference
from tests.support.wordpiece_ids import PUBLISHED_IDS


@pytest.fixture(scope="module", params=["f16", "q8_0"])
def converted(
    request: pytest.FixtureRequest,
    published: Path,
    default_source: ConvertedModel,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    path = tmp_path_factory.mktemp("converted") / "model.gguf"
    convert_bert(
        published / "model.safetensors",
        published / "vocab.txt",
        path,
        default_source.shape,
        quantization=request.param,
    )
    return request.param, path


def test_vectors_agree_with_the_published_weights_in_float32(converted: tuple[str, Path], published: Path) -> None:
    quantization, path = converted
    reference = BertReference(published / "model.safetensors")
    embedder = LlamaEmbedder(path)
    least = {"f16": 0.9999, "q8_0": 0.99}[quantization]  # eight bits blur a run of unknown words most
    samples = PUBLISHED_IDS[:8]  # ASCII, accents, Japanese, Chinese, Korean, mixed
    vectors = embedder.embed_documents([text for text, _ in samples])
    embedder.close()
    for vector, (text, ids) in zip(vectors, samples, strict=True):
        assert vector @ reference.embed(ids) > least, text


def test_tokens_agree_with_the_published_tokenizer(default_model: Path) -> None:
    embedder = LlamaEmbedder(default_model)
    counted = {text: embedder.count_tokens(text) + 2 for text, _ in PUBLISHED_IDS}
    embedder.close()
    assert counted == {text: len(ids) for text, ids in PUBLISHED_IDS}


def test_same_input_gives_the_same_bytes(
    converted: tuple[str, Path], published: Path, default_source: ConvertedModel, tmp_path: Path
) -> None:
    quantization, path = converted
    again = tmp_path / "again.gguf"
    convert_bert(
        published / "model.safetensors",
        published / "vocab.txt",
        again,
        default_source.shape,
        quantization=quantization,
    )
    assert hash_file(again) == hash_file(path)
    assert [file.name for file in tmp_path.iterdir()] == ["again.gguf"]


def test_other_tools_read_the_file(default_model: Path) -> None:
    reader = gguf.GGUFReader(default_model)
    assert reader.fields["general.architecture"].contents() == "bert"
    assert reader.fields["bert.attention.causal"].contents() is False
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    assert len(tokens) == 30522
    assert tokens[101] == "[CLS]"
    assert {str(tensor.name) for tensor in reader.tensors} >= {"token_embd.weight", "blk.5.ffn_down.weight"}


@pytest.mark.parametrize(
    ("wordpiece", "phantom"),
    [("word", "▁word"), ("##ing", "ing"), ("[CLS]", "[CLS]"), ("[unused7]", "▁[unused7]"), ("##", "")],
)
def test_word_starts_are_marked(wordpiece: str, phantom: str) -> None:
    assert phantom_space(wordpiece) == phantom


def test_damaged_weights_leave_nothing_behind(published: Path, default_source: ConvertedModel, tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes((published / "model.safetensors").read_bytes()[:1_000_000])
    with pytest.raises(ModelCorrupt) as caught:
        convert_bert(weights, published / "vocab.txt", tmp_path / "out.gguf", default_source.shape)
    assert caught.value.hint
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_vocabulary_of_another_model_is_refused(
    published: Path, default_source: ConvertedModel, tmp_path: Path
) -> None:
    shutil.copy(published / "vocab.txt", tmp_path / "vocab.txt")
    with (tmp_path / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("onemore\n")
    with pytest.raises(ModelCorrupt):
        convert_bert(
            published / "model.safetensors", tmp_path / "vocab.txt", tmp_path / "out.gguf", default_source.shape
        )
