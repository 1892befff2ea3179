"""What the README tells agents to run is a command that there is, in a file that can be read."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.cli import build_parser

README = (Path(__file__).parents[3] / "README.md").read_text()
SECTION = README.partition("## Editors and agents\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```(json|toml)\n(.*?)```", SECTION, re.DOTALL)


def commands_in(value: Any) -> list[list[str]]:
    """Every command that a configuration holds, with its arguments."""
    if not isinstance(value, dict):
        return []
    if "command" in value:
        command = value["command"]
        return [command if isinstance(command, list) else [command, *value["args"]]]
    return [command for each in value.values() for command in commands_in(each)]


@pytest.mark.parametrize(("kind", "text"), BLOCKS)
def test_configuration_can_be_read_and_its_command_is_ours(kind: str, text: str) -> None:
    ((program, *words),) = commands_in(json.loads(text) if kind == "json" else tomllib.loads(text))
    assert program == "memoryd"
    assert build_parser().parse_args(words).start


def test_commands_for_the_shell_are_ours_too() -> None:
    lines = [line for line in SECTION.splitlines() if line.startswith("$ ")]
    assert len(BLOCKS) == 6
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line.partition(" -- ")[2])
        assert words[0] == "memoryd"
        assert build_parser().parse_args(words[1:]).start
