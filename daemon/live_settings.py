"""The settings of [search] while memoryd runs: what is in force, and how it is changed, for one query or for all.

Either takes a part of the [search] table, such as ``{"fusion": "rrf", "weights": {"vector": 0}}``, checked by the
schema that the file is checked by.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoryd.daemon.config import Config, Search
from memoryd.daemon.config_draft import Draft
from memoryd.daemon.config_edit import set_values
from memoryd.daemon.config_schema import SETTINGS, build, settings_of, value_of
from memoryd.store.errors import ConfigInvalid, InvalidParams

SEARCH_SETTINGS = settings_of(Search)  # by their keys inside [search]
# The language model is asked with these, and the reranker is this one, for as long as memoryd runs.
AT_START = ("hyde.timeout_s", "hyde.max_tokens", "rerank.model")
HINT = "config.example.toml documents every key of [search]; 'memoryd config get' prints what is in force."

Table = Mapping[str, Any]  # a part of [search], as JSON
Values = Mapping[str, Any]  # settings of [search], by key


def read_table(table: Table) -> dict[str, Any]:
    """The values in a table, by key. ``InvalidParams`` names every one that is unknown or does not fit."""
    if sum(len(value) if isinstance(value, dict) else 1 for value in table.values()) > len(SEARCH_SETTINGS):
        # Looking for what each was meant to be would keep a thread busy for minutes.
        raise InvalidParams(f"settings holds more than the {len(SEARCH_SETTINGS)} keys that there are.", hint=HINT)
    draft = Draft(SEARCH_SETTINGS, environ={})
    try:
        draft.take_table(_as_toml(table), "settings.{}".format, Path())
    except RecursionError:
        raise InvalidParams("settings is nested too deeply.", hint=HINT) from None
    _refuse(draft.problems)
    return draft.values


def lay_over(search: Search, values: Values) -> Search:
    """The settings with these values over them. ``InvalidParams`` if they do not go together."""
    laid = build(Search, {**_flat(search), **values})
    problems = [
        f"settings.{key}: cannot change while memoryd runs; set search.{key} in the configuration and restart memoryd"
        for key in AT_START
        if value_of(laid, key) != value_of(search, key)
    ]
    if laid.weights.words == laid.weights.trigram == laid.weights.vector == 0:
        problems.append("settings.weights: found all weights 0; allowed: one above 0 at least")
    _refuse(problems)
    return laid


def _refuse(problems: list[str]) -> None:
    if problems:
        raise InvalidParams("\n".join(problems), hint=HINT)


def _as_toml(table: Table) -> dict[str, Any]:
    """JSON has null, which says nothing, and 5.0 for 5. ``"mmr": true`` is short for ``"mmr": {"enabled": true}``."""
    plain: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            plain[name] = {key: _whole(inner) for key, inner in value.items() if inner is not None}
        elif isinstance(value, bool) and f"{name}.enabled" in SEARCH_SETTINGS:
            plain[name] = {"enabled": value}
        elif value is not None:
            plain[name] = _whole(value)
    return plain


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _flat(search: Search) -> dict[str, Any]:
    return {key: value_of(search, key) for key in SEARCH_SETTINGS}


@dataclass(frozen=True, slots=True)
class _InForce:
    """Replaced as a whole: a reader sees all of a change, or nothing of it."""

    search: Search
    configured: Search  # what a reset goes back to
    origin: Mapping[str, str]  # of what is configured, by key; absent = default


class LiveSettings:
    """What queries are answered by, until memoryd stops. May be read and changed by any thread."""

    def __init__(self, config: Config, default_file: Path) -> None:
        self._in_force = _InForce(config.search, config.search, _origin(config))
        self._file = config.file
        self._default_file = default_file
        self._changing = threading.Lock()  # one change after the other; a reader never waits

    def search(self, table: Table | None = None) -> Search:
        """What is in force, with what one query asks for over it."""
        search = self._in_force.search
        return lay_over(search, read_table(table)) if table else search

    def change(self, table: Table, *, reset: bool = False, persist: bool = False) -> None:
        """Lay a part of the table over what is in force, or over what is configured if ``reset``.

        With ``persist`` it is written into the configuration file too. If it cannot be, nothing changes.
        """
        values = read_table(table)
        with self._changing:
            now = self._in_force
            search = lay_over(now.configured if reset else now.search, values)
            if persist:
                configured = lay_over(now.configured, values)
                self._write(values, now.origin)
                now = replace(now, configured=configured, origin={**now.origin, **dict.fromkeys(values, "file")})
            self._in_force = replace(now, search=search)

    def reconfigure(self, config: Config) -> None:
        """Go on with another configuration. What was changed live stays so, unless the configuration changed it too."""
        with self._changing:
            now, wanted = self._in_force, config.search
            kept = {
                key: change["live"]
                for key, change in _changes(now).items()
                if value_of(wanted, key) == change["configured"]
            }
            try:
                search = lay_over(wanted, kept)
            except InvalidParams:  # the two do not go together: the file is the later word
                search = wanted
            self._in_force, self._file = _InForce(search, wanted, _origin(config)), config.file

    def changes(self) -> dict[str, dict[str, Any]]:
        """The settings that are not as configured, by key: what is in force, and what was configured."""
        return _changes(self._in_force)

    def describe(self) -> dict[str, Any]:
        """Every setting in force, as the table that ``change`` takes, and where each comes from."""
        now = self._in_force
        changes = _changes(now)
        settings: dict[str, Any] = {}
        for key, value in _flat(now.search).items():
            table, _, name = key.rpartition(".")
            (settings.setdefault(table, {}) if table else settings)[name] = value
        return {
            "settings": settings,
            "origin": {key: "live" if key in changes else now.origin.get(key, "default") for key in SEARCH_SETTINGS},
            "changed": changes,
            "file": str(self._file) if self._file else None,
        }

    def _write(self, values: Values, origin: Mapping[str, str]) -> None:
        if self._file is None:
            raise ConfigInvalid(
                ("memoryd runs without a configuration file; nothing was changed",),
                hint=f"Create {self._default_file} and restart memoryd, or leave out persist.",
            )
        if not self._file.exists():
            raise ConfigInvalid((f"{self._file} is no longer there; nothing was changed",))
        if winning := [SETTINGS[f"search.{key}"].variable for key in values if origin.get(key) == "environment"]:
            raise ConfigInvalid(
                (f"the environment's {', '.join(winning)} would win over the file; nothing was changed",),
                hint="Unset it where memoryd is started, or leave out persist.",
            )
        set_values(self._file, {f"search.{key}": value for key, value in values.items()})


def _origin(config: Config) -> dict[str, str]:
    return {key: config.origin[f"search.{key}"] for key in SEARCH_SETTINGS if f"search.{key}" in config.origin}


def _changes(now: _InForce) -> dict[str, dict[str, Any]]:
    return {
        key: {"live": value, "configured": value_of(now.configured, key)}
        for key, value in _flat(now.search).items()
        if value != value_of(now.configured, key)
    }
