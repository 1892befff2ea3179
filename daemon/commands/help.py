"""argparse, told how wide the terminal is: by itself it imports what compresses archives to find that out."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, NoReturn

from memoryd.daemon.commands.painting import count_columns

_MARGIN = 2  # as argparse leaves


class WrappedHelp(argparse.HelpFormatter):
    """argparse makes one for every option that is added."""

    def __init__(self, prog: str, **how: Any) -> None:
        super().__init__(prog, **{"width": count_columns(os.environ) - _MARGIN, **how})


class PlainHelp(WrappedHelp, argparse.RawDescriptionHelpFormatter):
    """With the description's lines as they were written."""


class CommandParser(argparse.ArgumentParser):
    def __init__(self, **how: Any) -> None:
        super().__init__(**{"formatter_class": WrappedHelp, **how})
        self.register("action", "switch", argparse.BooleanOptionalAction)  # named, as argparse's other actions are


class PrintVersion(argparse.Action):
    """Looks the version up only when it is asked for: reading package metadata takes longer than a search."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        sys.stdout.write(f"memoryd {version('memoryd')}\n")  # a message of exit's would go to stderr
        parser.exit()
