"""Values on their way into the configuration: checked one by one, each with the place it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoryd.daemon.config_problem import describe, did_you_mean, quote_key
from memoryd.daemon.config_schema import Setting, fit
from memoryd.daemon.paths import expand_path
from memoryd.daemon.vector_uri import is_folder
from memoryd.jobs.storage_options import StorageOption, parse_option

Place = Callable[[str], str]  # where a key stands, in words: a function, as only a problem needs the search


class Draft:
    """Values taken from one place after another, the later ones winning, and the problems met on the way."""

    def __init__(self, settings: Mapping[str, Setting], environ: Mapping[str, str]) -> None:
        self.settings = settings
        self.environ = environ
        self.values: dict[str, Any] = {}
        self.origin: dict[str, str] = {}
        self.places: dict[str, Place] = {}  # where a value stands, for a problem that is only seen later
        self.refused: set[str] = set()  # keys whose value did not fit
        self.problems: list[str] = []

    def take(self, key: str, value: Any, origin: str, place: Place, folder: Path) -> None:
        """One value for a known key, or a problem."""
        setting = self.settings[key]
        try:
            value = fit(setting, value)
            if _is_path(setting, value):
                value = str(expand_path(value, folder, self.environ))
            elif setting.form == "paths":
                value = tuple(str(expand_path(glob, folder, self.environ)) for glob in value)
            elif setting.form == "options":
                value = tuple(self._expand_option(parse_option(text), folder) for text in value)
        except ValueError as unfit:
            # Where the name of a variable belongs, the secret itself may stand.
            hidden = setting.is_secret or _may_be_secret(setting, value)
            found = "a hidden value" if hidden else describe(value)
            guess = did_you_mean(str(value), setting.choices) if setting.choices else ""
            self.problems.append(f"{place(key)}: found {found}; allowed: {unfit}{guess}")
            self.refused.add(key)
        else:
            self.values[key], self.origin[key], self.places[key] = value, origin, place

    def _expand_option(self, option: StorageOption, folder: Path) -> str:
        if option.kind == "file":
            option = replace(option, value=str(expand_path(option.value, folder, self.environ)))
        return str(option)

    def take_table(self, table: Mapping[str, Any], place: Place, folder: Path, inside: str = "") -> None:
        """A TOML table and the tables in it."""
        known = {inside + key.removeprefix(inside).partition(".")[0] for key in self.settings if key.startswith(inside)}
        for name, value in table.items():
            key = inside + name
            if "." in name or key not in known:
                choice = f"; known here: {', '.join(sorted(known))}"
                guess = did_you_mean(name, known, self.settings) or choice
                self.problems.append(f"{place(inside + quote_key(name))}: unknown{guess}")
            elif key in self.settings:
                self.take(key, value, "file", place, folder)
            elif isinstance(value, dict):
                self.take_table(value, place, folder, f"{key}.")
            else:
                self.problems.append(f"{place(key)}: found {describe(value)}; allowed: a table, [{key}]")


def _may_be_secret(setting: Setting, value: Any) -> bool:
    return setting.form in ("variable", "credential", "options") and isinstance(value, str | list)


def _is_path(setting: Setting, value: str) -> bool:
    if setting.form == "place":
        return value != "" and is_folder(value)
    if setting.form == "model":
        return value.endswith(".gguf") and not value.startswith("hf:")
    return setting.form == "path" and value != ""
