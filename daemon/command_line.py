"""A search as it would be typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from memoryd.daemon.requests import SearchRequest
from memoryd.store.search.why_not.changes import SETTINGS, Change

_OPTIONS = (
    "limit",
    "min_score",
    "source",
    "path",
    "workspace",
    "scope",
    "exclude",
    "after",
    "before",
    "as_of",
    "include_superseded",
    "hyde",
    "rerank",
)


def search_command(request: SearchRequest, changes: Iterable[Change]) -> str:
    """The command that asks what was asked, with some changes."""
    options = {"query": request.query, **{name: getattr(request, name) for name in _OPTIONS}}
    settings = _flat(request.settings or {})
    for change in changes:
        if change.is_setting:
            settings[change.setting.removeprefix(SETTINGS)] = change.value
        else:
            options[change.setting] = change.value
    query = str(options.pop("query"))
    typed = [word for name, value in options.items() for word in _typed(f"--{name.replace('_', '-')}", value)]
    typed += [word for key, value in settings.items() for word in ("--set", f"{key}={_toml(value)}")]
    words = [*typed, "--", query] if query.startswith("-") else [query, *typed]
    return shlex.join(["memoryd", "search", *words])


def _typed(option: str, value: Any) -> list[str]:
    if value is True:
        return [option]
    if value is False and option in ("--hyde", "--rerank"):
        return [f"--no-{option.removeprefix('--')}"]
    if value is None or value is False:
        return []
    if isinstance(value, tuple):
        return [word for each in value for word in (option, str(each))]
    return [option, f"{value:g}" if isinstance(value, float) else str(value)]


def _flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return flat


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
