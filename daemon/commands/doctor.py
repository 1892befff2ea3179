"""``memoryd doctor``: everything a user could get wrong, with the fix for each."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon
from memoryd.daemon.commands.output import console, plural, print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memoryd.daemon.doctor.finding import Finding

_MARKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "ok": ("✓", "green")}


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check everything that could be wrong, and say how to fix it",
        description="Check the configuration, the folders, the daemon, the model, the machine and the notes, with or "
        "without a running daemon. Nothing is changed. Exit code 0: no problems, warnings at most; 4: problems found.",
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.doctor.examination import examine

    findings = list(examine(arguments.config, os.environ, Path.cwd()))
    count = {state: sum(finding.state == state for finding in findings) for state in _MARKS}
    if arguments.json:
        print_json(
            {
                "ok": not count["problem"],
                "problems": count["problem"],
                "warnings": count["warning"],
                "checks": [asdict(finding) for finding in findings],
            }
        )
    else:
        console().print(render(findings, count))
    return 4 if count["problem"] else 0


def render(findings: list[Finding], count: dict[str, int]) -> RenderableType:
    """The verdict, then the worst first, each with its fix on a line that can be copied."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    worst = next(state for state in _MARKS if count[state] or state == "ok")
    mark, colour = _MARKS[worst]
    told = [plural(count[state], state) for state in ("problem", "warning") if count[state]]
    fine = plural(count["ok"], "check")
    words = f"{' and '.join(told)}, {fine} fine" if told else f"all {fine} fine"
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for state, (sign, style) in _MARKS.items():
        for finding in (each for each in findings if each.state == state):
            message = Text(finding.message, style="dim" if state == "ok" else "")
            if finding.fix:
                message.append(f"\n→ {finding.fix}", style="bold")
            for detail in finding.details:
                message.append(f"\n  {detail}", style="dim")
            table.add_row(Text(f"  {sign}", style=style), Text(finding.check), message)
    return Group(Text(f"{mark} memoryd doctor: {words}", style=f"bold {colour}"), Text(), table)
