"""Changing one setting in the configuration file, with everything else in it left as it was written."""

from __future__ import annotations

import os
from pathlib import Path

from memoryd.store.errors import ConfigInvalid


def set_value(file: Path, section: str, key: str, value: str) -> None:
    """Written beside and renamed, so that the file is never half written."""
    import tomlkit

    document = tomlkit.parse(file.read_text(encoding="utf-8")) if file.exists() else tomlkit.document()
    table = document.setdefault(section, tomlkit.table())
    table[key] = value
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(tomlkit.dumps(document), encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise ConfigInvalid(
            (f"{file} cannot be written: {error.strerror}",), hint=f"Set {section}.{key} = {value!r} yourself"
        ) from error
