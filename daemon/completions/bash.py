"""The completion for bash 4.4 and later; needs nothing of the bash-completion package."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from memoryd.daemon.commands.outline import Command
from memoryd.daemon.completions.values import Values, values_of

_SCRIPT = """\
# bash completion for memoryd, written by 'memoryd completion bash'
_memoryd() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} at=memoryd word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        case "$at $word" in
            {commands}) at="$at $word" ;;
        esac
    done
    case "$at $prev" in
{values}
    esac
    if [[ $cur == -* ]]; then
        case "$at" in
{options}
        esac
        return
    fi
    case "$at" in
{arguments}
    esac
}}
_memoryd_fill() {{ # what is completed with: f(iles), d(irectories), o(pen-ended words), w(ords); then the words
    local kind=$1 word
    shift
    for word in "$@"; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done
    case $kind in
        *o*) compopt -o nospace 2> /dev/null ;;
    esac
    case $kind in
        *f*) compopt -o filenames 2> /dev/null; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur") ;;
        *d*) compopt -o filenames 2> /dev/null; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$cur") ;;
    esac
}}
complete -F _memoryd memoryd
"""  # noqa: E501  a shell script's lines are its own


def render_bash(program: Command) -> str:
    everything = list(program.walk())
    return _SCRIPT.format(
        commands="|".join(f'"{_at(command)}"' for command in everything if command.words),
        values="\n".join(line for command in everything for line in _value_lines(command)),
        options="\n".join(_option_line(command) for command in everything),
        arguments="\n".join(_argument_line(command) for command in everything),
    )


def _value_lines(command: Command) -> Iterator[str]:
    """An option that takes a value is followed by one; what may follow an optional one is anything."""
    for option in command.options:
        if option.value and not option.value_is_optional:
            places = "|".join(f'"{_at(command)} {flag}"' for flag in option.flags)
            yield f"        {places}) {_fill(values_of(option))}; return ;;"


def _option_line(command: Command) -> str:
    words = Values(words=tuple(flag for option in command.options for flag in option.flags))
    return f'            "{_at(command)}") {_fill(words)} ;;'


def _argument_line(command: Command) -> str:
    if command.commands:
        values = Values(words=tuple(sub.words[-1] for sub in command.commands))
    else:  # which of several is being typed is not told apart: what fits any is offered
        each = [values_of(argument) for argument in command.arguments]
        values = Values(
            tuple(word for found in each for word in found.words),
            any(found.files for found in each),
            any(found.folders for found in each),
            any(found.open_ended for found in each),
        )
    return f'        "{_at(command)}") {_fill(values)} ;;'


def _fill(values: Values) -> str:
    kind = ("f" if values.files else "d" if values.folders else "w") + ("o" if values.open_ended else "")
    return shlex.join(["_memoryd_fill", kind, *values.words])


def _at(command: Command) -> str:
    return " ".join(["memoryd", *command.words])
