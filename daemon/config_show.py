"""The configuration printed: as TOML for people, as JSON for programs, and as config.example.toml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.daemon.config import Config, Workspace
from memoryd.daemon.config_schema import SETTINGS, WORKSPACE_SETTINGS, Setting, sections_of, value_of

EXAMPLE_HEADER = """\
# memoryd reads this file from $XDG_CONFIG_HOME/memoryd/config.toml (usually ~/.config/memoryd/config.toml),
# from $MEMORYD_CONFIG, or from --config FILE. Every key is shown with its default; remove the # to change it.
# An environment variable overrides a key: MEMORYD_SEARCH__LIMIT=10 is limit = 10 in [search].
# MEMORYD_WORKSPACE=/one:/two stands for two [[workspace]] blocks. `memoryd config check` tells every mistake.
"""


def render_config(config: Config) -> str:
    """The effective configuration as TOML that loads to the same settings; secrets are masked."""
    lines = [f"# read from {config.file}" if config.file else "# no configuration file"]
    lines += [f"# {note}" for note in config.notes]
    for workspace in config.workspaces:
        lines += [
            "",
            _comment(Workspace),
            f"[[workspace]]  # from: {config.origin.get('workspace', 'default')}",
        ]
        for key, setting in WORKSPACE_SETTINGS.items():
            lines += [_explain(setting), f"{key} = {_toml(_shown(setting, value_of(workspace, key)))}"]
    for table, section in _tables(Config):
        lines += ["", _comment(section), f"[{table}]"]
        for setting in _settings_in(table):
            origin = f"  # from: {config.origin[setting.key]}" if setting.key in config.origin else ""
            lines += [_explain(setting), _assign(setting, value_of(config, setting.key)) + origin]
    return "\n".join(lines) + "\n"


def to_json(config: Config) -> dict[str, Any]:
    """The effective configuration as plain JSON values; secrets are masked."""
    shown: dict[str, Any] = {
        "file": str(config.file) if config.file else None,
        "notes": list(config.notes),
        "workspace": [
            {key: _plain(_shown(setting, value_of(each, key))) for key, setting in WORKSPACE_SETTINGS.items()}
            for each in config.workspaces
        ],
    }
    for key, setting in SETTINGS.items():
        table = shown
        *parents, name = key.split(".")
        for parent in parents:
            table = table.setdefault(parent, {})
        table[name] = _plain(_shown(setting, value_of(config, key)))
    shown["origin"] = {key: config.origin.get(key, "default") for key in ("workspace", *SETTINGS)}
    return shown


def render_example() -> str:
    """The text of config.example.toml."""
    lines = [EXAMPLE_HEADER, _comment(Workspace), "#[[workspace]]"]
    for key, setting in WORKSPACE_SETTINGS.items():
        default = "~/notes" if setting.default is None else setting.default
        lines += [_explain(setting), f"#{key} = {_toml(default)}"]
    for table, section in _tables(Config):
        lines += ["", _comment(section), f"[{table}]"]
        for setting in _settings_in(table):
            lines += [_explain(setting), f"#{_assign(setting, setting.default)}"]
    return "\n".join(lines) + "\n"


def _tables(section: type, inside: str = "") -> Iterator[tuple[str, type]]:
    for name, inner in sections_of(section):
        yield inside + name, inner
        yield from _tables(inner, f"{inside}{name}.")


def _settings_in(table: str) -> list[Setting]:
    return [setting for key, setting in SETTINGS.items() if key.rpartition(".")[0] == table]


def _comment(section: type) -> str:
    return f"# {(section.__doc__ or '').splitlines()[0]}"


def _explain(setting: Setting) -> str:
    return f"# {setting.doc} ({setting.span})" if setting.span else f"# {setting.doc}"


def _assign(setting: Setting, value: Any) -> str:
    return f"{setting.key.rpartition('.')[2]} = {_toml(_shown(setting, value))}"


def _shown(setting: Setting, value: Any) -> Any:
    return "********" if setting.is_secret and value else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _toml(value: Any) -> str:
    """JSON's scalars and lists are TOML's, but for one control character that JSON leaves as it is."""
    return json.dumps(_plain(value), ensure_ascii=False).replace("\x7f", "\\u007f")
