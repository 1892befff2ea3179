"""The completion for fish 3.1 and later."""

from __future__ import annotations

from collections.abc import Iterator

from memoryd.daemon.commands.outline import Argument, Command, Option
from memoryd.daemon.completions.values import Values, values_of

_START = """\
# fish completion for memoryd, written by 'memoryd completion fish'
set -g __memoryd_commands {commands}
function __memoryd_at --argument-names wanted --description 'Whether this command of memoryd is being typed'
    set -l at ''
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$at $word")
        contains -- $next $__memoryd_commands; and set at $next
    end
    test "$at" = "$wanted"
end
complete -c memoryd -f
"""


def render_fish(program: Command) -> str:
    everything = list(program.walk())
    known = " ".join(_quote(" ".join(command.words)) for command in everything if command.words)
    lines = [line for command in everything for line in _lines(command)]
    return _START.format(commands=known) + "\n".join(lines) + "\n"


def _lines(command: Command) -> Iterator[str]:
    here = f"__memoryd_at {_quote(' '.join(command.words))}"
    start = f"complete -c memoryd -n {_quote(here)}"
    for sub in command.commands:
        yield f"{start} -a {_quote(sub.words[-1])} -d {_quote(sub.help)}"
    for option in command.options:
        yield f"{start} {_flags(option)}{_option_value(option)} -d {_quote(option.help)}"
    for argument in command.arguments:
        if offered := _offered(values_of(argument)):
            yield f"{start}{offered} -d {_quote(_description(argument))}"


def _flags(option: Option) -> str:
    return " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)


def _option_value(option: Option) -> str:
    if not option.value or option.value_is_optional:
        return ""
    values = values_of(option)
    return f" -r{_offered(values)}" if values.files or values.folders else f" -x{_offered(values)}"


def _offered(values: Values) -> str:
    files = " -F" if values.files else " -a '(__fish_complete_directories)'" if values.folders else ""
    return files + (f" -a {_quote(' '.join(values.words))}" if values.words else "")


def _description(argument: Argument) -> str:
    return argument.help.partition(";")[0]


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
