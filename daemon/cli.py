"""The command line. Starts in a blink: a command imports what it needs when it runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from memoryd.daemon.commands import config, evaluate, get, index, model, run, search, status, verify, why_not
from memoryd.daemon.commands.options import PrintVersion, add_common
from memoryd.daemon.commands.output import print_error
from memoryd.store.errors import ConfigInvalid, InvalidParams, MemorydError, NotRunning

OK, FAILED, USAGE, NOT_RUNNING, DEGRADED = 0, 1, 2, 3, 4

_DESCRIPTION = """\
memoryd keeps an agent's markdown memory searchable: MEMORY.md, memory/**/*.md, skills/**/*.md.

Start the daemon with 'memoryd run', then ask it from anywhere:

  memoryd search "why did we leave cron"
  memoryd why-not "why did we leave cron" memory/2026-10-02.md:12
  memoryd get memory/2026-10-02.md:10-30
  memoryd status --watch
"""
_EPILOG = """\
exit codes:
  0  ok
  1  the command failed; the message says why and what to do
  2  wrong usage, or a configuration with problems
  3  the daemon is not running
  4  it runs, but degraded; or a check failed
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memoryd",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=PrintVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (run, status, search, why_not, get, index, verify, config, model, evaluate):
        command.add_parser(commands, add_common)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = build_parser().parse_args(argv)
    try:
        _arm_failpoints()
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except MemorydError as error:
        print_error(error, as_json=getattr(arguments, "json", False))
        return exit_code(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
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
