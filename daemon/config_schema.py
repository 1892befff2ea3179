"""The settings dataclasses, walked: the flat list of settings, what fits each, and the way back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar

from memoryd.daemon.config import Config, Workspace
from memoryd.jobs.scope import parse_rule
from memoryd.jobs.storage_options import parse_option
from memoryd.store.globs import static_prefix

Section = TypeVar("Section")

WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
SECRET = {"key", "token", "secret", "password"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the configuration."""

    key: str  # dotted: "search.weights.words"
    default: Any  # None where the key must be given
    doc: str
    kind: type  # int, float, bool, str or tuple (of str)
    low: float | None
    high: float | None
    above: float | None
    choices: tuple[str, ...]
    form: str  # "path", "model", "glob", "paths", "scope", "variable", "credential", "name", "place", "options" or ""

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return "MEMORYD_" + self.key.upper().replace(".", "__")

    @property
    def is_secret(self) -> bool:
        """Whether its value must not be shown: told by a word of its name (``tokens`` is not ``token``).

        Where a secret is kept is none.
        """
        return self.form not in ("path", "variable", "credential") and not SECRET.isdisjoint(
            self.key.rpartition(".")[2].split("_")
        )

    @property
    def span(self) -> str:
        """The choices or the range, in short; empty where there is none."""
        if self.choices:
            return ", ".join(self.choices[:-1]) + " or " + self.choices[-1]
        if self.kind not in (int, float):
            return ""
        return f"above {self.above} up to {self.high}" if self.low is None else f"{self.low} to {self.high}"

    @property
    def allowed(self) -> str:
        """What fits, in words."""
        if self.choices:
            return self.span
        if self.kind in (int, float):
            return f"a {'whole ' if self.kind is int else ''}number, {self.span}"
        if self.form == "glob":
            return 'a list of globs inside the folder, such as "memory/**/*.md"'
        if self.form == "paths":
            return 'a list of globs, each with a folder before its first *, such as "~/.claude/projects/**/*.jsonl"'
        if self.form == "scope":
            return 'a list of rules, such as "agent:coder = memory/agents/coder/**" or "user:* = memory/users/*/**"'
        if self.form == "options":
            return 'a list such as "region = eu-central-1" or "aws_secret_access_key = env:S3_SECRET"'
        if self.form == "variable":
            return "the name of an environment variable, not its value"
        if self.form == "credential":
            return "the name of a credential, not its value"
        if self.form == "name":
            return "at most 64 characters without / : or control characters"
        return {bool: "true or false", str: "a path" if self.form == "path" else "a text"}[self.kind]


def sections_of(section: type) -> Iterator[tuple[str, type]]:
    """The tables inside a section: name and dataclass."""
    for item in fields(section):
        if is_dataclass(item.default):
            yield item.name, type(item.default)


def settings_of(section: type, prefix: str = "") -> dict[str, Setting]:
    """Every setting of a section and of the sections inside it, by dotted key, in the order of the schema."""
    found = {}
    for item in fields(section):
        if "doc" in item.metadata:
            default = None if item.default is MISSING else item.default
            kind = str if default is None else type(default)
            found[prefix + item.name] = Setting(prefix + item.name, default, kind=kind, **item.metadata)
    for name, inner in sections_of(section):
        found |= settings_of(inner, f"{prefix}{name}.")
    return found


SETTINGS = settings_of(Config)
WORKSPACE_SETTINGS = settings_of(Workspace)


def build(section: type[Section], values: Mapping[str, Any], prefix: str = "", **rest: Any) -> Section:
    """The section with these values, by dotted key, and defaults for the others."""
    own = {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
    flat = {key: value for key, value in own.items() if "." not in key}
    nested: dict[str, Any] = {name: build(inner, own, f"{name}.") for name, inner in sections_of(section)}
    return section(**flat, **nested, **rest)


def value_of(section: object, key: str) -> Any:
    """The value behind a dotted key."""
    for name in key.split("."):
        section = getattr(section, name)
    return section


def parse_text(setting: Setting, text: str) -> Any:
    """What a text from outside TOML stands for; the text itself where it is no such thing."""
    try:
        if setting.kind in (int, float):
            return setting.kind(text)
        if setting.kind is bool:
            return WORDS[text.strip().lower()]
        if setting.kind is tuple:  # as $PATH has them
            return [part for part in text.split("," if setting.form == "options" else ":") if part]
    except (ValueError, KeyError):
        pass  # does not fit, and is reported as what it is
    return text


def fit(setting: Setting, value: object) -> Any:
    """The value as the setting's type. Raises ``ValueError`` where it does not fit."""
    if setting.kind is float and type(value) is int:
        value = float(value) if abs(value) < 2**53 else math.inf
    if setting.kind is tuple and isinstance(value, list):
        value = tuple(value)
    if type(value) is not setting.kind or not _within(setting, value):
        raise ValueError(setting.allowed)
    if setting.form == "scope":
        _check_rules(setting, value)
    if setting.form == "options":
        _check_options(setting, value)
    return value


def _check_options(setting: Setting, options: Any) -> None:
    for text in options:
        try:
            parse_option(str(text))
        except ValueError as wrong:
            raise ValueError(f"{setting.allowed}; wrong: {wrong}") from None


def _check_rules(setting: Setting, rules: Any) -> None:
    for text in rules:
        try:
            parse_rule(str(text))
        except ValueError as wrong:
            raise ValueError(f"{setting.allowed}; wrong in {str(text)[:60]!r}: {wrong}") from None


def _within(setting: Setting, value: Any) -> bool:
    if setting.kind in (int, float):
        return (
            (setting.low is None or value >= setting.low)
            and (setting.above is None or value > setting.above)
            and (setting.high is None or value <= setting.high)
        )
    if setting.choices:
        return value in setting.choices
    if setting.form == "glob":
        return all(isinstance(glob, str) and _stays_inside(glob) for glob in value)
    if setting.form == "paths":
        return all(isinstance(glob, str) and _has_folder(glob) for glob in value)
    if setting.form == "variable":
        return value == "" or bool(value.isascii() and value.isidentifier())
    if setting.form == "credential":
        return bool(re.fullmatch(r"[\w@:.-]{0,255}", value, re.ASCII)) and value not in (".", "..")
    if setting.form == "name":
        return len(value) <= 64 and value == clean_name(value)
    return setting.form == "" or "\0" not in value


def _stays_inside(glob: str) -> bool:
    return bool(glob) and not glob.startswith("/") and "\0" not in glob and ".." not in glob.split("/")


def _has_folder(glob: str) -> bool:
    """Whether a glob says where it begins: all of a disk is too much to watch."""
    folder = static_prefix(glob).strip("/")
    return bool(folder) and "\0" not in glob and ".." not in glob.split("/") and not glob.endswith("/")


def clean_name(text: str) -> str:
    """A workspace name: it stands in job keys and on one line of a table."""
    return "".join("-" if char in "/:" or not char.isprintable() else char for char in text).strip()
