"""The manual page: all of the command line, up to date, and sound roff."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from memoryd.daemon.cli import EXIT_CODES, build_parser
from memoryd.daemon.commands.outline import outline
from memoryd.daemon.config_file import SHORTCUTS
from memoryd.daemon.config_schema import SETTINGS
from memoryd.daemon.manual import render_manual

PAGE = Path(__file__).parents[3] / "docs/memoryd.1"
PROGRAM = outline(build_parser())


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed here")


def test_the_committed_page_is_what_the_command_line_says() -> None:
    assert PAGE.read_text() == render_manual(PROGRAM), "run 'make man'"


@needs("groff")
def test_groff_renders_it_without_a_warning() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-Kutf8", "-P-cbou", PAGE], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "memoryd status [-w|--watch] [--prometheus]" in done.stdout


@needs("mandoc")
def test_mandoc_finds_nothing_but_the_missing_date() -> None:
    """A page without a date is the same on every machine and every day."""
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", PAGE], capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def test_every_command_option_code_and_variable_is_in_it() -> None:
    page = PAGE.read_text().replace("\\-", "-")
    for command in PROGRAM.walk():
        assert " ".join(["memoryd", *command.words]) in page
        for option in command.options:
            assert all(f"\\fB{flag}\\fR" in page for flag in option.flags if flag not in ("-h", "--help", "--version"))
    assert all(f"\\fB{code}\\fR" in page.partition("EXIT STATUS")[2] for code in EXIT_CODES)
    for variable in (*SHORTCUTS, *(setting.variable for setting in SETTINGS.values())):
        assert f"\\fB{variable}\\fR" in page
