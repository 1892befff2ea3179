"""What a GGUF file says about itself, read without loading the model.

llama.cpp aborts the process on some damaged files, so a file is checked here before it gets that far: the
header must parse, every tensor must lie inside the file, and the model must be one that makes embeddings.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from memoryd.store.errors import ModelCorrupt, ModelMissing

# Models that are encoders by construction: usable even where the file names no pooling.
ENCODERS: Final = frozenset(
    {
        "bert",
        "eurobert",
        "gemma-embedding",
        "jina-bert-v2",
        "jina-bert-v3",
        "modern-bert",
        "neo-bert",
        "nomic-bert",
        "nomic-bert-moe",
    }
)
_RANK: Final = 4
POOLINGS: Final = {1: "mean", 2: "cls", 3: "last"}  # llama.cpp's numbers; 0 is none, 4 a reranker's score

_SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING: Final = 8
_ARRAY: Final = 9
_MOST_ENTRIES: Final = 1 << 20  # no real header has more; a damaged count must not cost minutes
_LONGEST_STRING: Final = 1 << 24

REINSTALL: Final = "Install it again with `memoryd model install`, or set `embedder.model` to an embedding GGUF."

Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The facts of an embedding model's file."""

    architecture: str  # "bert", "qwen3", ...
    pooling: str  # "mean", "cls" or "last"; a reranker's is "rank"
    dimension: int
    context: int  # tokens the model was trained for
    strips_accents: bool  # llama.cpp decomposes the text before it looks words up
    quantized: bool  # whether its weights are smaller than F16, as far as the file says


def verify_gguf(path: Path) -> GgufFile:
    """Read the file's header; raise ``ModelCorrupt`` unless it is a whole GGUF of an embedding model."""
    return _embedding_facts(path, read_metadata(path, if_missing="Run `memoryd model install`.", if_damaged=REINSTALL))


def verify_reranker(path: Path) -> GgufFile:
    """The same for a reranker: ``ModelCorrupt`` unless it is a whole GGUF of a model that scores pairs of texts."""
    hint = "Set search.rerank.model to a reranker; 'memoryd model list' names some."
    metadata = read_metadata(path, if_missing="Run 'memoryd model install'.", if_damaged=hint)
    architecture = str(metadata.get("general.architecture") or "unknown")
    if metadata.get(f"{architecture}.pooling_type") != _RANK:
        raise ModelCorrupt(f"{path} holds a {architecture} model that ranks nothing", hint=hint)
    return _facts(path, metadata, architecture, "rank")


def read_metadata(path: Path, *, if_missing: str, if_damaged: str) -> dict[str, Value]:
    """What the header of a whole GGUF says, arrays left out. The hints are for the errors that it raises."""
    try:
        with path.open("rb") as file:
            return _read_header(file, path.stat().st_size)
    except FileNotFoundError as error:
        raise ModelMissing(f"there is no model file at {path}", hint=if_missing) from error
    except OSError as error:
        raise ModelCorrupt(f"{path} cannot be read: {error.strerror}", hint=if_damaged) from error
    except (_DamageError, struct.error, UnicodeDecodeError) as error:
        raise ModelCorrupt(f"{path} is not a whole GGUF file: {error}", hint=if_damaged) from error


def is_quantized(metadata: Mapping[str, Value]) -> bool:
    """Whether the weights are smaller than F16, as far as the file says."""
    return metadata.get("general.file_type") not in _WHOLE_WEIGHTS


_WHOLE_WEIGHTS: Final = (0, 1)  # general.file_type of F32 and F16


class _DamageError(ValueError):
    """The bytes are not a whole GGUF file."""


def _embedding_facts(path: Path, metadata: dict[str, Value]) -> GgufFile:
    architecture = str(metadata.get("general.architecture") or "unknown")
    number = metadata.get(f"{architecture}.pooling_type")
    pooling = POOLINGS.get(number) if isinstance(number, int) else None
    if pooling is None and number in (None, 0) and architecture in ENCODERS:
        pooling = "mean"
    if pooling is None:
        raise ModelCorrupt(
            f"{path} holds a {architecture} model that makes no embeddings",
            hint="Set `embedder.model` to an embedding model; `memoryd model list` names some.",
        )
    return _facts(path, metadata, architecture, pooling)


def _facts(path: Path, metadata: dict[str, Value], architecture: str, pooling: str) -> GgufFile:
    dimension = metadata.get(f"{architecture}.embedding_length_out") or metadata.get(f"{architecture}.embedding_length")
    context = metadata.get(f"{architecture}.context_length")
    if not isinstance(dimension, int) or not isinstance(context, int) or dimension < 1 or context < 1:
        raise ModelCorrupt(f"{path} does not state its dimension and context", hint=REINSTALL)
    wordpiece = metadata.get("tokenizer.ggml.model") == "bert"
    strips_accents = wordpiece and metadata.get("tokenizer.ggml.normalizer.strip_accents") is not False
    return GgufFile(architecture, pooling, dimension, context, strips_accents, is_quantized(metadata))


def _read_header(file: BinaryIO, size: int) -> dict[str, Value]:
    """The scalar metadata of the file; raises ``_DamageError`` where the tensors do not fit into its size."""
    if file.read(4) != b"GGUF":
        raise _DamageError("it does not begin with GGUF")
    version, tensors, entries = _unpack(file, "IQQ")
    if version not in (2, 3):
        raise _DamageError(f"its version is {version}")
    if tensors > _MOST_ENTRIES or entries > _MOST_ENTRIES:
        raise _DamageError("its counts are impossible")
    metadata: dict[str, Value] = {}
    for _ in range(entries):
        key = _read_string(file)
        (kind,) = _unpack(file, "I")
        metadata[key] = _read_value(file, kind)
    end = max((_read_tensor_end(file) for _ in range(tensors)), default=0)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise _DamageError("its alignment is impossible")
    start = -(-file.tell() // alignment) * alignment
    if start + end > size:
        raise _DamageError(f"it has {size} bytes of {start + end}")
    return metadata


def _read_tensor_end(file: BinaryIO) -> int:
    """Where, from the start of the data, the next tensor of the header ends."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType  # slow to import, seldom needed

    name = _read_string(file)
    (dimensions,) = _unpack(file, "I")
    if dimensions > 4:
        raise _DamageError(f"tensor {name} has {dimensions} dimensions")
    elements = 1
    for extent in _unpack(file, "Q" * dimensions):
        elements *= extent
    kind, offset = _unpack(file, "IQ")
    try:
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError):
        block, block_bytes = 1, 0  # a quantisation newer than our table: its length is not checked
    return int(offset) + elements // block * block_bytes


def _read_value(file: BinaryIO, kind: int) -> Value:
    """One metadata value; an array is skipped and comes back as None."""
    if kind == _STRING:
        return _read_string(file)
    if kind in _SCALARS:
        value: int | float | bool = _unpack(file, _SCALARS[kind])[0]
        return value
    if kind != _ARRAY:
        raise _DamageError(f"a value has the unknown type {kind}")
    element, length = _unpack(file, "IQ")
    if element in _SCALARS:
        _skip(file, struct.calcsize("<" + _SCALARS[element]) * length)
    elif element == _STRING:
        _skip_strings(file, length)
    else:
        raise _DamageError(f"an array has the unknown type {element}")
    return None


def _read_string(file: BinaryIO) -> str:
    (length,) = _unpack(file, "Q")
    if length > _LONGEST_STRING:
        raise _DamageError("a string is impossibly long")
    return _read_exactly(file, length).decode("utf-8")


def _skip_strings(file: BinaryIO, count: int) -> None:
    """Of a vocabulary there are tens of thousands, and each start of memoryd goes through them."""
    read, number = file.read, int.from_bytes
    for _ in range(count):
        stated = read(8)
        length = number(stated, "little")
        if length > _LONGEST_STRING:
            raise _DamageError("a string is impossibly long")
        if len(stated) != 8 or len(read(length)) != length:
            raise _DamageError("it ends inside its header")


def _unpack(file: BinaryIO, layout: str) -> tuple[int, ...]:
    return struct.unpack("<" + layout, _read_exactly(file, struct.calcsize("<" + layout)))


def _read_exactly(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) != length:
        raise _DamageError("it ends inside its header")
    return data


def _skip(file: BinaryIO, length: int) -> None:
    if length > _LONGEST_STRING * 16:
        raise _DamageError("an array is impossibly long")
    _read_exactly(file, length)
