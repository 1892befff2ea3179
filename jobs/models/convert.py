"""A BERT encoder as published (safetensors and a WordPiece vocabulary) becomes one GGUF.

The facts follow llama.cpp's own converter: its tensor names, its phantom-space vocabulary, and which tensors
stay in float32. The same input and the same ``gguf`` package give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memoryd.jobs.models.catalogue import BertShape
from memoryd.jobs.models.disk import publish
from memoryd.store.errors import ModelCorrupt
from memoryd.store.failpoints import failpoint

WORD_START: Final = "▁"  # marks a token that begins a word; WordPiece marks the others, with ##
SPECIAL_TOKENS: Final = {  # by GGUF's word for the role; "seperator" is how the format spells it
    "padding": "[PAD]",
    "unknown": "[UNK]",
    "bos": "[CLS]",
    "seperator": "[SEP]",
    "mask": "[MASK]",
}

# Published name -> llama.cpp's name.
_TENSORS: Final = (
    (r"embeddings\.word_embeddings\.weight", "token_embd.weight"),
    (r"embeddings\.position_embeddings\.weight", "position_embd.weight"),
    (r"embeddings\.token_type_embeddings\.weight", "token_types.weight"),
    (r"embeddings\.LayerNorm\.(weight|bias)", r"token_embd_norm.\1"),
    (r"encoder\.layer\.(\d+)\.attention\.self\.query\.(weight|bias)", r"blk.\1.attn_q.\2"),
    (r"encoder\.layer\.(\d+)\.attention\.self\.key\.(weight|bias)", r"blk.\1.attn_k.\2"),
    (r"encoder\.layer\.(\d+)\.attention\.self\.value\.(weight|bias)", r"blk.\1.attn_v.\2"),
    (r"encoder\.layer\.(\d+)\.attention\.output\.dense\.(weight|bias)", r"blk.\1.attn_output.\2"),
    (r"encoder\.layer\.(\d+)\.attention\.output\.LayerNorm\.(weight|bias)", r"blk.\1.attn_output_norm.\2"),
    (r"encoder\.layer\.(\d+)\.intermediate\.dense\.(weight|bias)", r"blk.\1.ffn_up.\2"),
    (r"encoder\.layer\.(\d+)\.output\.dense\.(weight|bias)", r"blk.\1.ffn_down.\2"),
    (r"encoder\.layer\.(\d+)\.output\.LayerNorm\.(weight|bias)", r"blk.\1.layer_output_norm.\2"),
)
_HEAD: Final = (  # of a cross-encoder; nothing else has use for the pooler
    (r"pooler\.dense\.(weight|bias)", r"cls.\1"),
    (r"classifier\.(weight|bias)", r"cls.output.\1"),
)
_UNUSED: Final = re.compile(r"embeddings\.position_ids|pooler\..*")
_ALWAYS_FLOAT32: Final = frozenset({"position_embd.weight", "token_types.weight"})


def convert_bert(
    weights: Path, vocabulary: Path, destination: Path, shape: BertShape, *, quantization: str = "f16"
) -> None:
    """Write ``destination`` from ``model.safetensors`` and ``vocab.txt``; it appears whole or not at all."""
    published = _read_tensors(weights)
    tensors = {ours: tensor for name, tensor in published.items() if (ours := _rename(name, shape.pooling))}
    # Not splitlines(): U+0085 and U+2028 may be tokens.
    tokens = vocabulary.read_text(encoding="utf-8").rstrip("\n").split("\n")
    _check_shapes(tensors, tokens, weights)
    part = destination.with_name(f"{destination.name}.part")
    try:
        _write(part, tensors, tokens, shape, quantization)
        failpoint("model.convert.finished")
        publish(part, destination)
        failpoint("model.convert.renamed")
    finally:
        part.unlink(missing_ok=True)


def phantom_space(token: str) -> str:
    """A WordPiece token in llama.cpp's spelling: the start of a word is marked, not its continuation."""
    if token in SPECIAL_TOKENS.values():
        return token
    return token[2:] if token.startswith("##") else WORD_START + token


def _write(
    path: Path, tensors: Mapping[str, NDArray[Any]], tokens: list[str], shape: BertShape, quantization: str
) -> None:
    import gguf

    poolings = {"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS, "rank": gguf.PoolingType.RANK}
    kind = {"f16": gguf.GGMLQuantizationType.F16, "q8_0": gguf.GGMLQuantizationType.Q8_0}[quantization]
    file_type = {"f16": gguf.LlamaFileType.MOSTLY_F16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}[quantization]
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_type("model")
    writer.add_name(shape.name)
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_block_count(sum(name.endswith(".attn_q.weight") for name in tensors))
    writer.add_context_length(tensors["position_embd.weight"].shape[0])
    writer.add_embedding_length(tensors["token_embd.weight"].shape[1])
    writer.add_feed_forward_length(tensors["blk.0.ffn_up.weight"].shape[0])
    writer.add_head_count(shape.heads)
    writer.add_layer_norm_eps(shape.layer_norm_epsilon)
    writer.add_causal_attention(False)
    writer.add_pooling_type(poolings[shape.pooling])
    writer.add_token_type_count(tensors["token_types.weight"].shape[0])
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([phantom_space(token) for token in tokens])
    special = set(SPECIAL_TOKENS.values())
    control, normal = int(gguf.TokenType.CONTROL), int(gguf.TokenType.NORMAL)
    writer.add_token_types([control if token in special else normal for token in tokens])
    for role, token in SPECIAL_TOKENS.items():
        writer.add_uint32(f"tokenizer.ggml.{role}_token_id", tokens.index(token))
    for name, tensor in sorted(tensors.items()):
        stored = gguf.GGMLQuantizationType.F32
        if tensor.ndim > 1 and name not in _ALWAYS_FLOAT32:
            stored = kind
        writer.add_tensor(name, gguf.quants.quantize(tensor.astype(np.float32), stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _read_tensors(weights: Path) -> Mapping[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors: Mapping[str, NDArray[Any]] = load_file(weights)
    except SafetensorError as error:
        raise ModelCorrupt(
            f"{weights} is not a whole safetensors file: {error}", hint="Run `memoryd model install`."
        ) from error
    return tensors


def _rename(name: str, pooling: str) -> str | None:
    """None: the tensor is of no use."""
    for published, ours in (*_TENSORS, *(_HEAD if pooling == "rank" else ())):
        if match := re.fullmatch(published, name):
            return match.expand(ours)
    if _UNUSED.fullmatch(name):
        return None
    raise ModelCorrupt(f"no BERT encoder has a tensor named {name}", hint="Use a ready GGUF of this model.")


def _check_shapes(tensors: Mapping[str, NDArray[Any]], tokens: list[str], weights: Path) -> None:
    missing = [token for token in SPECIAL_TOKENS.values() if token not in tokens]
    embeddings = tensors.get("token_embd.weight")
    if missing or embeddings is None or embeddings.shape[0] != len(tokens):
        raise ModelCorrupt(f"the vocabulary does not belong to {weights}", hint="Download both files again.")
