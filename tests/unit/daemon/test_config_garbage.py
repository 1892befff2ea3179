"""Whatever a file or the environment holds, the answer is a configuration or ``ConfigInvalid``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memoryd.daemon.config import Config
from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_problem import find_line
from memoryd.daemon.config_schema import SETTINGS, WORKSPACE_SETTINGS
from memoryd.store.errors import ConfigInvalid

NAMES = sorted({part for key in (*SETTINGS, *WORKSPACE_SETTINGS) for part in key.split(".")} | {"workspace"})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.one_of(
    st.booleans(), st.integers(), st.floats(), TEXT, st.sampled_from(["~", "~nobody/x", "$HOME", "${X}"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | TEXT, inner, max_size=4),
    max_leaves=12,
)
TABLES = st.dictionaries(st.sampled_from(NAMES) | TEXT, VALUES, max_size=6)
# Tables of the right shape get past the first check and reach the ones behind it.
SHAPED = st.dictionaries(st.sampled_from(sorted(SETTINGS)), SCALARS, max_size=8)
BLOCKS = st.lists(st.dictionaries(st.sampled_from(sorted(WORKSPACE_SETTINGS)), SCALARS | st.lists(TEXT), max_size=5))


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return str(value)  # inf and nan are TOML, Infinity and NaN are not
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def survives(folder: Path, content: bytes, environ: dict[str, str] | None = None) -> None:
    file = folder / "config.toml"
    file.write_bytes(content)
    outcome: Config | tuple[str, ...]
    try:
        outcome = load_config(file, {"HOME": str(folder), **(environ or {})}, folder)
    except ConfigInvalid as invalid:
        outcome = invalid.problems
    if isinstance(outcome, tuple):
        assert outcome
        assert all("\n" not in problem and len(problem) < 1000 for problem in outcome), outcome


anything = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@anything
@given(TABLES)
def test_any_tables_are_survived(tmp_path: Path, tables: dict[str, Any]) -> None:
    survives(tmp_path, "\n".join(f"{toml(key)} = {toml(value)}" for key, value in tables.items()).encode())


@anything
@given(SHAPED, BLOCKS)
def test_any_values_under_known_keys_are_survived(tmp_path: Path, values: dict[str, Any], blocks: list[Any]) -> None:
    lines = [f"{key} = {toml(value)}" for key, value in values.items()]
    for block in blocks:
        lines += ["[[workspace]]", *(f"{key} = {toml(value)}" for key, value in block.items())]
    survives(tmp_path, "\n".join(lines).encode())


@anything
@given(st.binary(max_size=200) | TEXT.map(str.encode))
@example(b"a = [" * 3000)
@example(b"\xef\xbb\xbf")
def test_any_bytes_are_survived(tmp_path: Path, content: bytes) -> None:
    survives(tmp_path, content)


@anything
@given(
    st.dictionaries(
        st.sampled_from([setting.variable for setting in SETTINGS.values()] + ["MEMORYD_WORKSPACE"])
        | TEXT.map("MEMORYD_".__add__).filter(lambda name: name != "MEMORYD_CONFIG"),
        TEXT | st.integers().map(str),
        max_size=6,
    )
)
def test_any_environment_is_survived(tmp_path: Path, environ: dict[str, str]) -> None:
    survives(tmp_path, b"", environ)


@given(TEXT, TEXT)
def test_looking_for_a_line_never_fails(text: str, key: str) -> None:
    line = find_line(text, key)
    assert line is None or 1 <= line <= len(text.splitlines())
