"""``memoryd completion``: the script that teaches a shell this command line."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryd.daemon.commands.help import PlainHelp
from memoryd.daemon.commands.options import AddCommon

SHELLS = ("bash", "zsh", "fish")

_DESCRIPTION = """\
Print the completion script for a shell. To keep it:

  memoryd completion bash > ~/.local/share/bash-completion/completions/memoryd
  memoryd completion zsh > ~/.zfunc/_memoryd       # a folder of $fpath
  memoryd completion fish > ~/.config/fish/completions/memoryd.fish
"""


def add_parser(commands: Any, _add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "completion",
        help="print the completion script for a shell",
        description=_DESCRIPTION,
        formatter_class=PlainHelp,
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.cli import build_parser
    from memoryd.daemon.commands.outline import outline
    from memoryd.daemon.completions.bash import render_bash
    from memoryd.daemon.completions.fish import render_fish
    from memoryd.daemon.completions.zsh import render_zsh

    render = {"bash": render_bash, "zsh": render_zsh, "fish": render_fish}[arguments.shell]
    sys.stdout.write(render(outline(build_parser())))
    return 0
