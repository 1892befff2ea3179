"""The manual page memoryd(1), written from the command line and the settings: ``python -m memoryd.daemon.manual``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version

from memoryd.daemon.cli import EXIT_CODES, build_parser
from memoryd.daemon.commands.outline import Argument, Command, Option, outline
from memoryd.daemon.config import Config, Workspace
from memoryd.daemon.config_schema import SETTINGS, WORKSPACE_SETTINGS, Setting, sections_of
from memoryd.daemon.embedding_keys import KEY_VARIABLES

_SUMMARY = "searchable memory for agents and editors"
_FILES = {
    "$XDG_CONFIG_HOME/memoryd/config.toml": "The configuration. Without the variable: ~/.config/memoryd/config.toml.",
    "$XDG_DATA_HOME/memoryd/": "The index: ledger, vectors and embedding cache. May be deleted at any time; it is made "
    "anew. Without the variable: ~/.local/share/memoryd/.",
    "$XDG_CACHE_HOME/memoryd/models/": "Installed models. Without the variable: ~/.cache/memoryd/models/.",
    "$XDG_RUNTIME_DIR/memoryd/memoryd.sock": "The socket, which speaks JSON-RPC 2.0. Without the variable: in "
    "/run/user/UID/memoryd/, or in run/ of the data folder.",
    "$XDG_CONFIG_HOME/systemd/user/memoryd.service, memoryd.socket": "The service, where it is installed.",
    "MEMORY.md, memory/**/*.md, skills/**/*.md": "What is indexed of a workspace unless its include says otherwise. "
    "Never written.",
}
_VARIABLES = {
    "MEMORYD_CONFIG": "The configuration file, like --config.",
    "MEMORYD_WORKSPACE": "Workspaces instead of the configured ones, separated by colons.",
    **{
        variable: "A file with that key, instead."
        if variable.endswith("_FILE")
        else f"A key for memoryd to embed with {variable.split('_')[1].capitalize()}, if the local model cannot be had."
        for variable in KEY_VARIABLES
    },
    "XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR": "Folders of the files below.",
    "HF_ENDPOINT": "The model hub, or a mirror of it, that models are fetched from.",
    "SSL_CERT_FILE": "The certificates that downloads trust.",
    "NO_COLOR": "Set: output has no colours.",
    "MEMORYD_FAILPOINTS": "Makes memoryd fail at named places; for its own tests.",
}


def render_manual(program: Command) -> str:
    """The page, in man(7) macros. Without a date: the same command line gives the same bytes."""
    lines = [
        '.\\" Written by "make man" from the command line; changes made here are lost.',
        f'.TH MEMORYD 1 "" "memoryd {version("memoryd")}" "User Commands"',
        ".nh",
        ".nr HY 0",  # no hyphenation, not after the next heading either: commands and settings are copied
        ".ad l",
        ".SH NAME",
        f"memoryd \\- {_text(_SUMMARY)}",
        ".SH SYNOPSIS",
        *(line for command in program.walk() if not command.commands for line in _synopsis(command)),
        ".SH DESCRIPTION",
        *_paragraphs(program.description),
        ".SH COMMANDS",
        *(line for command in program.walk() if command.words for line in _command(command)),
        ".SH CONFIGURATION",
        "A TOML file. Every key has a default, and an environment variable that overrides it.",
        '"memoryd config check" reports every problem at once.',
        *_settings(),
        ".SH ENVIRONMENT",
        *(line for name, words in _VARIABLES.items() for line in _entry(f"\\fB{_text(name)}\\fR", words)),
        *(
            line
            for setting in SETTINGS.values()
            for line in _entry(f"\\fB{setting.variable}\\fR", f"{setting.key} of the configuration.")
        ),
        ".SH FILES",
        *(line for name, words in _FILES.items() for line in _entry(f"\\fI{_text(name)}\\fR", words)),
        ".SH EXIT STATUS",
        *(line for code, words in EXIT_CODES.items() for line in _entry(f"\\fB{code}\\fR", _sentence(words))),
        ".SH SEE ALSO",
        ".BR systemctl (1),",
        ".BR inotify (7)",
    ]  # fmt: skip
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _synopsis(command: Command) -> Iterator[str]:
    yield f".SY {_quoted(_name(command))}"
    for option in command.options:
        if "--help" not in option.flags:
            more = " ...\\&" if option.repeated else ""
            yield f"[{_spelled(option, '|')}]{more}"
    yield from (_spelled_argument(argument) for argument in command.arguments)
    yield ".YS"


def _command(command: Command) -> Iterator[str]:
    yield f".SS {_quoted(_name(command))}"
    yield from _paragraphs(_sentence(command.description))
    for argument in command.arguments:
        yield from _entry(f"\\fI{_text(argument.value)}\\fR", _sentence(argument.help))
    for option in command.options:
        if "--help" not in option.flags:
            yield from _entry(_spelled(option, ", "), _sentence(option.help))


def _settings() -> Iterator[str]:
    yield ".SS [[workspace]]"
    yield _about(Workspace)
    for key, setting in WORKSPACE_SETTINGS.items():
        yield from _setting(key, setting)
    for table in dict.fromkeys(key.rpartition(".")[0] for key in SETTINGS):
        section: type = Config
        for name in table.split("."):
            section = dict(sections_of(section))[name]
        yield f".SS [{table}]"
        yield _about(section)
        for key, setting in SETTINGS.items():
            if key.rpartition(".")[0] == table:
                yield from _setting(key.rpartition(".")[2], setting)


def _about(section: type) -> str:
    """What its documentation says first; the rest is for those who read the code."""
    return _text(" ".join((section.__doc__ or "").partition("\n\n")[0].split()))


def _setting(key: str, setting: Setting) -> Iterator[str]:
    facts = [f"Default: {_value(setting.default)}."] if setting.default is not None else ["Must be given."]
    facts += [f"Allowed: {setting.span}."] if setting.span else []
    yield from _entry(f"\\fB{_text(key)}\\fR", f"{setting.doc} {' '.join(facts)}")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "empty"


def _entry(tag: str, words: str) -> Iterator[str]:
    yield ".TP"
    yield tag
    yield from _paragraphs(words)


def _spelled(option: Option, between: str) -> str:
    value = f"\\fI{_text(option.value)}\\fR" if option.value else ""
    value = f" [{value}]" if option.value_is_optional else f" {value}" if value else ""
    return between.join(f"\\fB{_text(flag)}\\fR{value}" for flag in option.flags)


def _spelled_argument(argument: Argument) -> str:
    spelled = f"\\fI{_text(argument.value)}\\fR" + (" ...\\&" if argument.repeated else "")
    return spelled if argument.required else f"[{spelled}]"


def _paragraphs(text: str) -> list[str]:
    """Plain text as roff; indented lines stand as they are."""
    lines: list[str] = []
    verbatim = False
    for line in text.strip().splitlines():
        if line.startswith("  ") != verbatim:
            verbatim = not verbatim
            lines += [".EX", ".RS"] if verbatim else [".RE", ".EE"]
        if line.strip():
            lines.append(_text(line.strip()))
        elif not verbatim and lines:
            lines.append(".PP")
    return [*lines, ".RE", ".EE"] if verbatim else lines


def _sentence(words: str) -> str:
    """Help texts begin small and end bare; descriptions are sentences already."""
    end = "" if words.endswith(".") or "\n" in words else "."
    return f"{words[:1].upper()}{words[1:]}{end}" if words else ""


def _name(command: Command) -> str:
    return " ".join(["memoryd", *command.words])


def _quoted(text: str) -> str:
    return f'"{_text(text)}"'


def _text(text: str) -> str:
    """Text as roff sees it: no backslash, dash, quote or line start means anything but itself."""
    text = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    )
    text = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)
    return f"\\&{text}" if text.startswith((".", "\\(aq")) else text


if __name__ == "__main__":
    sys.stdout.write(render_manual(outline(build_parser())))
