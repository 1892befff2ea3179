"""Changing settings in the configuration file, with everything else in it left as it was written."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd.store.errors import ConfigInvalid
from memoryd.store.failpoints import failpoint

_HEADER = re.compile(r"\s*\[([^\[\]]+)\]")


def set_values(file: Path, values: Mapping[str, Any]) -> None:
    """Set these, by dotted key; there need be no file yet. Raises ``ConfigInvalid`` and leaves it as it was."""
    hint = f"Set {', '.join(f'{key} = {_as_toml(value)}' for key, value in values.items())} yourself"
    file = file.resolve()  # a link to it stays one
    try:
        text = edit_text(_read(file) if file.exists() else "", values)
        _write(file, text)
    except OSError as error:
        raise ConfigInvalid((f"{file} cannot be written: {error.strerror}",), hint=hint) from error
    except ValueError as error:
        raise ConfigInvalid((f"{file} cannot be changed: {error}",), hint=hint) from error


def _read(file: Path) -> str:
    with file.open("r+b") as opened:  # a file that is read-only could still be renamed over
        return opened.read().decode("utf-8-sig")


def _write(file: Path, text: str) -> None:
    """Written beside and renamed, so that the file is never half written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_bytes(text.encode())
        if file.exists():
            shutil.copymode(file, beside)
        failpoint("config.replace.before")
        beside.replace(file)
        failpoint("config.replace.after")
    finally:
        beside.unlink(missing_ok=True)
    for left in file.parent.glob(f".{glob.escape(file.name)}.*"):
        owner = left.name.rpartition(".")[2]
        if owner.isdigit() and not Path("/proc", owner).exists():  # killed before it was renamed
            left.unlink(missing_ok=True)


def edit_text(text: str, values: Mapping[str, Any]) -> str:
    """The text of a configuration with these values in it. Raises ``ValueError`` where they cannot be put in."""
    import tomllib

    wanted = tomllib.loads(text)
    for key, value in values.items():
        text = _put(text, wanted, key, value)
        table, name = _descend(wanted, key)
        table[name] = value
        if tomllib.loads(text) != wanted:  # strings may hold what looks like a table
            raise ValueError(f"there is no telling where {key} belongs")
    return text


def _put(text: str, data: dict[str, Any], key: str, value: Any) -> str:
    table, _, name = key.rpartition(".")
    lines = text.splitlines(keepends=True)
    headers = [_HEADER.match(line) for line in lines]
    start = next((number for number, header in enumerate(headers) if header and _plain(header[1]) == table), None)
    known, _ = _descend(data, key)
    newline = "\r\n" if "\r\n" in text else "\n"
    assignment = f"{name} = {_as_toml(value)}{newline}"
    if start is None and not known:
        gap = newline * (2 if not text.endswith("\n") else 1) if text else ""
        return f"{text}{gap}[{table}]{newline}{assignment}"
    if start is None or name in known:
        return _put_in_place(text, key, value)
    for number in range(start + 1, len(lines)):
        if lines[number].lstrip().startswith("["):
            break
        if re.match(rf"\s*#{name}\s*=", lines[number]):  # as config.example.toml has it, for the taking
            return "".join([*lines[:number], assignment, *lines[number + 1 :]])
    if not lines[start].endswith("\n"):
        lines[start] += newline
    return "".join([*lines[: start + 1], assignment, *lines[start + 1 :]])


def _put_in_place(text: str, key: str, value: Any) -> str:
    """For what is written already, in whichever of TOML's ways.

    Not for what is added: it would stand below the comment on the table that follows.
    """
    import tomlkit

    document = tomlkit.parse(text)
    table, name = _descend(document, key)
    table[name] = value
    return tomlkit.dumps(document)


def _descend(data: Any, key: str) -> tuple[Any, str]:
    """The table that a key stands in, empty where there is none, and its name there."""
    *tables, name = key.split(".")
    for each in tables:
        data = data.setdefault(each, {})
        if not isinstance(data, dict):
            raise ValueError(f"{each} is not a table")  # noqa: TRY004  one kind of exception for all that is wrong
    return data, name


def _plain(header: str) -> str:
    return "".join(header.split())


def _as_toml(value: Any) -> str:
    import tomlkit

    text: str = tomlkit.item(value).as_string()
    return text
