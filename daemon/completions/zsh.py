"""The completion for zsh: a function a command over ``_arguments``, for a file ``_memoryd`` in $fpath or for eval."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.daemon.commands.outline import Argument, Command, Option
from memoryd.daemon.completions.values import Values, values_of

_END = """\
if [ "$funcstack[1]" = "_memoryd" ]; then
    _memoryd "$@"
else
    compdef _memoryd memoryd
fi
"""


def render_zsh(program: Command) -> str:
    functions = "\n".join(_function(command) for command in program.walk())
    return f"#compdef memoryd\n# zsh completion for memoryd, written by 'memoryd completion zsh'\n\n{functions}\n{_END}"


def _function(command: Command) -> str:
    specs = [spec for option in command.options for spec in _option_specs(option)]
    if command.commands:
        return _group(command, specs)
    specs += [_argument_spec(argument) for argument in command.arguments]
    body = " \\\n        ".join(["_arguments -S", *specs])
    return f"{_name(command)}() {{\n    {body}\n}}\n"


def _group(command: Command, specs: list[str]) -> str:
    """A command that only has others below it: choose one, then complete as it does."""
    described = "\n".join(f"        {_quote(f'{sub.words[-1]}:{sub.help}')}" for sub in command.commands)
    cases = "\n".join(f"                {sub.words[-1]}) {_name(sub)} ;;" for sub in command.commands)
    head = " \\\n        ".join(["_arguments -C", *specs, "'1: :->command'", "'*:: :->rest'"])
    return f"""\
{_name(command)}() {{
    local context state state_descr line
    typeset -A opt_args
    local -a commands
    commands=(
{described}
    )
    {head}
    case $state in
        command) _describe -t commands 'command' commands ;;
        rest)
            case $line[1] in
{cases}
            esac
            ;;
    esac
}}
"""


def _option_specs(option: Option) -> Iterator[str]:
    others = "" if option.repeated else f"({' '.join(option.flags)})"
    for flag in option.flags:
        star = "*" if option.repeated else ""
        value = f":{_message(option.value)}:{_action(values_of(option))}" if option.value else ""
        if option.value_is_optional:
            value = f":{value}"
        elif " " in option.value:  # two values of the same kind
            value *= 2
        yield _quote(f"{others}{star}{flag}[{_escape(option.help)}]{value}")


def _argument_spec(argument: Argument) -> str:
    place = "*" if argument.repeated else "" if argument.required else ":"
    return _quote(f"{place}:{_message(argument.value)}:{_action(values_of(argument))}")


def _action(values: Values) -> str:
    if values.open_ended:
        return f"{{compadd -S '' -- {' '.join(values.words)}}}"
    if values.files and values.words:
        return f"{{_alternative 'words:value:({' '.join(values.words)})' 'files:file:_files'}}"
    if values.files:
        return "_files"
    if values.folders:
        return "_files -/"
    return f"({' '.join(values.words)})" if values.words else " "


def _name(command: Command) -> str:
    return "_".join(["_memoryd", *(word.replace("-", "_") for word in command.words)])


def _message(text: str) -> str:
    return re.sub(r"([:\\])", r"\\\1", text)


def _escape(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
