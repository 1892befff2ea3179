"""What the spellings of `embedder.model` mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.jobs.models.catalogue import (
    CATALOGUE,
    DEFAULT_MODEL,
    HubFile,
    HubOrigin,
    LocalFile,
    Model,
    resolve,
)
from memoryd.store.errors import ConfigInvalid


def test_every_entry_is_found_by_its_name() -> None:
    assert [resolve(model.name) for model in CATALOGUE] == list(CATALOGUE)
    assert len({model.name for model in CATALOGUE}) == len(CATALOGUE)


def test_name_is_found_however_it_is_capitalised() -> None:
    model = resolve("All-MiniLM-L6-v2")
    assert isinstance(model, Model)
    assert model.name == DEFAULT_MODEL


def test_hub_file_is_taken_apart() -> None:
    assert resolve("hf:acme/embed-gguf/q8/embed.Q8_0.gguf") == HubFile(
        HubOrigin("acme/embed-gguf", "main"), "q8/embed.Q8_0.gguf"
    )


@pytest.mark.parametrize("spec", ["~/models/a.gguf", "a.gguf", "./folder/a", "/srv/a.gguf"])
def test_path_is_a_path(spec: str) -> None:
    assert resolve(spec) == LocalFile(Path(spec).expanduser())


@pytest.mark.parametrize("spec", ["hf:acme/a.gguf", "hf:acme/repo/model.bin", "hf:a/b/../../c.gguf", "hf:"])
def test_malformed_hub_file_is_refused(spec: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        resolve(spec)
    assert "hf:<org>/<repo>/<file>.gguf" in caught.value.message


def test_misspelt_name_is_recognised() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        resolve("all-minilm-l6-v")
    assert f'did you mean "{DEFAULT_MODEL}"?' in caught.value.message
    assert "memoryd model list" in (caught.value.hint or "")
