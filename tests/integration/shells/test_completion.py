"""The completion scripts in the real shells, as a person types them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryd.daemon.cli import build_parser
from memoryd.daemon.commands.outline import outline
from memoryd.daemon.completions.bash import render_bash
from memoryd.daemon.completions.fish import render_fish
from memoryd.daemon.completions.zsh import render_zsh
from memoryd.jobs.embedders.providers import PROVIDERS
from memoryd.jobs.models.catalogue import CATALOGUE
from tests.support.terminal import Terminal, terminal

PROGRAM = outline(build_parser())
COMMANDS = {command.words[0] for command in PROGRAM.commands}
ACTIONS = {"show", "check", "path", "get", "set"}
MODELS = {model.name for model in CATALOGUE}
SERVICES = {*PROVIDERS, "none"}


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed here; CI installs it")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my notes").mkdir()
    (tmp_path / "memory.toml").write_text("")
    (tmp_path / "c.bash").write_text(render_bash(PROGRAM))
    (tmp_path / "_memoryd").write_text(render_zsh(PROGRAM))
    (tmp_path / "c.fish").write_text(render_fish(PROGRAM))
    return tmp_path


def ask(folder: Path, *words: str) -> list[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "LANG": "C.UTF-8"}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def complete_in_bash(folder: Path, *typed: str) -> set[str]:
    """The words of the line, the last one unfinished."""
    script = 'source c.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _memoryd; printf "%s\\n" "${COMPREPLY[@]}"'
    return set(ask(folder, "bash", "--norc", "-c", script, "bash", *typed)) - {""}


def complete_in_fish(folder: Path, line: str) -> set[str]:
    # The program itself is not found, so that nothing but the script can tell what it takes.
    found = ask(folder, "fish", "--no-config", "-c", "source c.fish; complete -C $argv[1]", line)
    return {each.partition("\t")[0] for each in found}


# -- bash -------------------------------------------------------------------------------------------------


@needs("bash")
def test_bash_completes_commands_options_choices_paths_and_models(folder: Path) -> None:
    assert complete_in_bash(folder, "memoryd", "") == COMMANDS
    assert complete_in_bash(folder, "memoryd", "s") == {"search", "service", "status"}
    assert complete_in_bash(folder, "memoryd", "config", "") == ACTIONS
    assert complete_in_bash(folder, "memoryd", "config", "set", "--re") == {"--reset"}
    assert complete_in_bash(folder, "memoryd", "status", "--") == {
        "--help", "--watch", "--prometheus", "--json", "--config",
    }  # fmt: skip
    assert complete_in_bash(folder, "memoryd", "completion", "") == {"bash", "zsh", "fish"}
    assert complete_in_bash(folder, "memoryd", "model", "use", "b") == {"bge-m3"}
    assert complete_in_bash(folder, "memoryd", "model", "use", "") > MODELS | SERVICES
    assert complete_in_bash(folder, "memoryd", "model", "use", "open") == {"openai", "openai-compatible"}
    assert complete_in_bash(folder, "memoryd", "model", "bench", "vo") == {"voyage"}
    assert complete_in_bash(folder, "memoryd", "model", "install", "open") == set()  # there is nothing to install
    assert complete_in_bash(folder, "memoryd", "search", "--source", "s") == {"skills", "sessions"}
    assert complete_in_bash(folder, "memoryd", "run", "--workspace", "m") == {"my notes"}
    assert complete_in_bash(folder, "memoryd", "run", "--config", "m") == {"my notes", "memory.toml"}
    assert complete_in_bash(folder, "memoryd", "search", "--set", "fus") == {"fusion="}


@needs("bash")
def test_bash_takes_the_value_of_an_option_and_a_query_for_no_command(folder: Path) -> None:
    assert complete_in_bash(folder, "memoryd", "search", "config", "") == set()
    assert "--explain" in complete_in_bash(folder, "memoryd", "search", "config", "set", "--")
    assert complete_in_bash(folder, "memoryd", "search", "--limit", "") == set()


@needs("bash")
def test_bash_completes_at_a_real_prompt(folder: Path) -> None:
    shell = ["bash", "--norc", "--noprofile", "-i"]
    assert run_typed(folder, shell, "source c.bash", "memoryd stat\t--prom\t") == ["status", "--prometheus"]
    assert run_typed(folder, shell, "source c.bash", "memoryd run --workspace m\t") == [
        "run",
        "--workspace",
        "my notes/",
    ]


# -- zsh --------------------------------------------------------------------------------------------------


ZSH = ["zsh", "-f", "-i"]
FROM_FPATH = "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D"
EVALUATED = 'autoload -Uz compinit; compinit -u -D; eval "$(cat _memoryd)"'


@needs("zsh")
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("memoryd stat\t--prom\t", ["status", "--prometheus"]),
        ("memoryd config se\t--per\t", ["config", "set", "--persist"]),
        ("memoryd model use bge\t", ["model", "use", "bge-m3"]),
        ("memoryd model use gemi\t", ["model", "use", "gemini"]),
        ("memoryd completion fi\t", ["completion", "fish"]),
        ("memoryd run --workspace m\t", ["run", "--workspace", "my notes"]),
        ("memoryd run --config memo\t", ["run", "--config", "memory.toml"]),
        ("memoryd search --set fus\trrf", ["search", "--set", "fusion=rrf"]),
        ("memoryd search config se\t", ["search", "config", "se"]),
    ],
)
def test_zsh_completes_what_is_typed(folder: Path, keys: str, words: list[str]) -> None:
    assert run_typed(folder, ZSH, FROM_FPATH, keys) == words


@needs("zsh")
def test_zsh_script_can_be_evaluated_too(folder: Path) -> None:
    assert run_typed(folder, ZSH, EVALUATED, "memoryd stat\t") == ["status"]


@needs("zsh")
def test_zsh_lists_every_command_with_its_help(folder: Path) -> None:
    with prompt_of(folder, ZSH, f"{FROM_FPATH}; LISTMAX=1000") as prompt:
        prompt.write("memoryd \t\t")
        for command in PROGRAM.commands:
            prompt.read_until(re.escape(command.words[0]) + r" +-- " + re.escape(command.help[:20]))


# -- fish -------------------------------------------------------------------------------------------------


@needs("fish")
def test_fish_completes_commands_options_choices_paths_and_models(folder: Path) -> None:
    assert complete_in_fish(folder, "memoryd ") == COMMANDS
    assert complete_in_fish(folder, "memoryd s") == {"search", "service", "status"}
    assert complete_in_fish(folder, "memoryd config ") == ACTIONS
    assert complete_in_fish(folder, "memoryd config set --re") == {"--reset"}
    assert complete_in_fish(folder, "memoryd status --") == {
        "--help", "--watch", "--prometheus", "--json", "--config",
    }  # fmt: skip
    assert complete_in_fish(folder, "memoryd completion ") == {"bash", "zsh", "fish"}
    assert complete_in_fish(folder, "memoryd model use bg") == {"bge-m3"}
    assert complete_in_fish(folder, "memoryd model use openai") == {"openai", "openai-compatible"}
    assert complete_in_fish(folder, "memoryd run --workspace my") == {"my notes/"}
    assert complete_in_fish(folder, "memoryd run --config m") == {"my notes/", "memory.toml"}
    assert complete_in_fish(folder, "memoryd search --set fus") == {"fusion="}
    assert complete_in_fish(folder, "memoryd search config se") == set()


# -- all --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_of_every_command_is_in_the_script(shell: str) -> None:
    script = {"bash": render_bash, "zsh": render_zsh, "fish": render_fish}[shell](PROGRAM)
    for command in PROGRAM.walk():
        for option in command.options:
            for flag in option.flags:
                known = f"-l {flag[2:]}" if shell == "fish" and flag.startswith("--") else flag
                known = f"-s {flag[1:]}" if shell == "fish" and not flag.startswith("--") else known
                assert known in script


@contextmanager
def prompt_of(folder: Path, shell: list[str], prepare: str) -> Iterator[Terminal]:
    """A shell that is ready; in it ``memoryd`` prints the words that it gets."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm", "LANG": "C.UTF-8"}
    with terminal(shell, env, folder) as prompt:
        prompt.write(f"{prepare}; memoryd() {{ printf '<%s>' \"$@\"; echo; }}; PS1='REA''DY '\n")
        prompt.read_until("READY ")
        yield prompt


def run_typed(folder: Path, shell: list[str], prepare: str, keys: str) -> list[str]:
    """The words that a command gets when these keys, and Enter, are typed."""
    with prompt_of(folder, shell, prepare) as prompt:
        prompt.write(f"{keys}\n")
        return re.findall("<(.*?)>", prompt.read_until("\n(<.*>)\n")[1])
