"""The note beside an installed model: what it is, where it came from and how to know it is whole."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from memoryd.jobs.models.disk import hash_file, publish


def manifest_path(model: Path) -> Path:
    return model.with_name(f"{model.name}.json")


def read_manifest(model: Path) -> dict[str, object] | None:
    """The manifest of a model's file; None where there is none or it cannot be read."""
    try:
        manifest = json.loads(manifest_path(model).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def write_manifest(model: Path, spec: str, origin: str) -> None:
    """Write it last: a model without a manifest is one whose installation was interrupted."""
    manifest = {
        "model": spec,
        "sha256": hash_file(model),
        "size": model.stat().st_size,
        "origin": origin,
        "created_by": f"memoryd {version('memoryd')}",
    }
    part = model.with_name(f"{model.name}.json.part")
    part.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    publish(part, manifest_path(model))
