"""Settings as they are typed: KEY=VALUE. A key of [search] may be written with or without ``search.``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memoryd.store.errors import InvalidParams

_IN_SEARCH = "search."


def split_assignments(texts: Iterable[str]) -> dict[str, str]:
    """Text of the value by whole dotted key; one that is not known stays as it was typed."""
    pairs = [text.partition("=") for text in texts]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise InvalidParams(f"{wrong[0]}: no value", hint="Write KEY=VALUE, such as search.rrf_k=20")
    return {whole_key(key): value for key, _, value in pairs}


def whole_key(typed: str) -> str:
    """``rrf_k`` is ``search.rrf_k``, and ``mmr`` alone is ``search.mmr.enabled``."""
    from memoryd.daemon.config_schema import SETTINGS

    typed = typed.strip()
    ways = (typed, _IN_SEARCH + typed, f"{typed}.enabled", f"{_IN_SEARCH}{typed}.enabled")
    return next((key for key in ways if key in SETTINGS), typed)


def search_table(texts: Iterable[str]) -> dict[str, Any]:
    """The part of [search] that the assignments make, for the daemon to check."""
    from memoryd.daemon.config_schema import SETTINGS, parse_text

    table: dict[str, Any] = {}
    for key, text in split_assignments(texts).items():
        inner, _, name = check_in_search(key).removeprefix(_IN_SEARCH).rpartition(".")
        (table.setdefault(inner, {}) if inner else table)[name] = parse_text(SETTINGS[key], text)
    return table


def check_in_search(key: str) -> str:
    """The key, if it is one that the daemon takes while it runs."""
    from memoryd.daemon.config_problem import did_you_mean, quote_key
    from memoryd.daemon.config_schema import SETTINGS

    if key.startswith(_IN_SEARCH) and key in SETTINGS:
        return key
    if key in SETTINGS:
        raise InvalidParams(
            f"{key} is read when memoryd starts; only what is in [search] changes while it runs",
            hint=f"Set {key} in the configuration ('memoryd config path' says where it is), and restart memoryd",
        )
    here = [known for known in SETTINGS if known.startswith(_IN_SEARCH)]
    shown = ".".join(map(quote_key, key.split(".")))
    raise InvalidParams(
        f"{shown}: unknown{did_you_mean(key, here, SETTINGS)}", hint="'memoryd config get' prints the keys"
    )
