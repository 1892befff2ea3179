"""The command line. Starts in a blink: a command imports what it needs when it runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from memoryd.daemon.commands.options import add_common
from memoryd.store.errors import ConfigInvalid, InvalidParams, MemorydError, NotRunning

TYPE_CHECKING = False  # importing typing would take longer than a search
if TYPE_CHECKING:
    import argparse
    from types import SimpleNamespace

# In the order of the help; each has its module in ``commands``.
COMMANDS = {
    "run": "run",
    "status": "status",
    "doctor": "doctor",
    "verify": "verify",
    "search": "search",
    "why-not": "why_not",
    "get": "get",
    "index": "index",
    "ingest": "ingest",
    "facts": "facts",
    "config": "config",
    "reload": "reload",
    "model": "model",
    "eval": "evaluate",
    "bench": "bench",
    "service": "service",
    "mcp": "mcp",
    "completion": "completion",
}
PLAIN = ("search", "get")  # asked often, and over in a blink: read without argparse if they are plainly written

OK, FAILED, USAGE, NOT_RUNNING, DEGRADED = 0, 1, 2, 3, 4

_DESCRIPTION = """\
memoryd keeps an agent's markdown memory searchable: MEMORY.md, memory/**/*.md, skills/**/*.md.

Start the daemon with 'memoryd run', then ask it from anywhere:

  memoryd search "why did we leave cron"
  memoryd why-not "why did we leave cron" memory/2026-10-02.md:12
  memoryd get memory/2026-10-02.md:10-30
  memoryd status --watch
"""
EXIT_CODES = {
    OK: "ok",
    FAILED: "the command failed; the message says why and what to do",
    USAGE: "wrong usage, or a configuration with problems",
    NOT_RUNNING: "the daemon is not running",
    DEGRADED: "it runs, but degraded; or a check failed",
}
_EPILOG = "exit codes:\n" + "\n".join(f"  {code}  {words}" for code, words in EXIT_CODES.items()) + "\n"


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """For all commands, or for the only one that is called: the others need not be imported for it."""
    import argparse

    from memoryd.daemon.commands.help import CommandParser, PlainHelp, PrintVersion

    parser = argparse.ArgumentParser(
        prog="memoryd",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=PlainHelp,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action=PrintVersion, nargs=0, default=argparse.SUPPRESS, help="print the version and exit"
    )
    commands = parser.add_subparsers(prog="memoryd", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, module in COMMANDS.items():
        if only in (None, name):
            import_module(f"memoryd.daemon.commands.{module}").add_parser(commands, add_common)
    return parser


def read_words(words: Sequence[str]) -> argparse.Namespace | SimpleNamespace:
    """What was typed after the program's name."""
    command = words[0] if words and words[0] in COMMANDS else None
    if command in PLAIN:
        from memoryd.daemon.commands.plain_words import NotPlain, PlainParser

        parser = PlainParser()
        import_module(f"memoryd.daemon.commands.{COMMANDS[command]}").add_parser(parser, add_common)
        try:
            return parser.parse(words[1:])
        except NotPlain:
            pass  # argparse reads it, or says what is wrong
    return build_parser(command).parse_args(words)


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in PLAIN:
        gc.disable()  # it ends before there is garbage
    if isinstance(sys.stdout, TextIOWrapper):  # a terminal that is not UTF-8 gets what it can show, not a crash
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = read_words(words)
    try:
        _arm_failpoints()
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except MemorydError as error:
        from memoryd.daemon.commands.output import print_error

        print_error(error, as_json=getattr(arguments, "json", False))
        return exit_code(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    finally:
        gc.freeze()  # or the interpreter looks through everything once more before it ends
    return code


def _arm_failpoints() -> None:
    """For the fault suite: without the variable nothing is even imported."""
    if named := os.environ.get("MEMORYD_FAILPOINTS"):
        from memoryd.store.failpoints import arm

        arm(named)


def exit_code(error: MemorydError) -> int:
    if isinstance(error, NotRunning):
        return NOT_RUNNING
    if isinstance(error, ConfigInvalid | InvalidParams):
        return USAGE
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
