"""A change to a query or to the settings, by the name that a person knows it by, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from memoryd.store.search.request import SearchQuery, SearchSettings

SETTINGS = "search."  # a name that begins so is a setting; any other is an option of the query

# Where a query's field has another name than its option.
_FIELDS = {"query": "text", "source": "sources", "path": "paths", "workspace": "workspaces"}


@dataclass(frozen=True, slots=True)
class Change:
    setting: str  # an option ("limit") or a setting ("search.decay.strength")
    value: Any  # None or () = the option is left out

    @property
    def is_setting(self) -> bool:
        return self.setting.startswith(SETTINGS)


Changes = tuple[Change, ...]


def apply_changes(
    query: SearchQuery, settings: SearchSettings, changes: Iterable[Change]
) -> tuple[SearchQuery, SearchSettings]:
    for change in changes:
        if change.is_setting:
            settings = _with_setting(settings, change.setting.removeprefix(SETTINGS), change.value)
        else:
            query = _with_option(query, change.setting, change.value)
    return query, settings


def merge_changes(changes: Changes, more: Changes) -> Changes:
    """The later word about a setting counts."""
    later = {change.setting for change in more}
    return (*(change for change in changes if change.setting not in later), *more)


def _with_option(query: SearchQuery, name: str, value: Any) -> SearchQuery:
    if name == "as_of" and isinstance(value, date):  # ages are counted from it
        return replace(query, as_of=value, today=value)
    fields: dict[str, Any] = {_FIELDS.get(name, name): value}
    return replace(query, **fields)


def _with_setting(settings: SearchSettings, name: str, value: Any) -> SearchSettings:
    section, dot, key = name.partition(".")
    if not dot:
        fields: dict[str, Any] = {section: value}
    elif section == "weights":
        fields = {section: {**settings.weights, key: value}}
    else:
        inner: dict[str, Any] = {key: value}
        fields = {section: replace(getattr(settings, section), **inner)}
    return replace(settings, **fields)
