"""``memoryd config``: what is in force, whether it is sound, and where it is read from."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import plural, print_json, say


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "config",
        help="show, check or locate the configuration",
        description="The configuration: defaults, then the file, then MEMORYD_* variables, then options.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, action, words in (
        ("show", show, "print the settings in force, with where each comes from"),
        ("check", check, "report every problem at once; exit code 2 if there are any"),
        ("path", path, "print where the configuration, the data, the models and the socket are"),
    ):
        sub = actions.add_parser(name, help=words, description=words.capitalize() + ".")
        add_common(sub)
        sub.set_defaults(run=action)


def show(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.config_show import render_config, to_json

    config, _ = load(arguments)
    if arguments.json:
        print_json(to_json(config))
    else:
        sys.stdout.write(render_config(config))
    return 0


def check(arguments: argparse.Namespace) -> int:
    config, paths = load(arguments)  # raises ConfigInvalid with all problems
    missing = [workspace for workspace in config.workspaces if not workspace.path.is_dir()]
    if arguments.json:
        print_json(
            {
                "ok": not missing,
                "file": str(config.file) if config.file else None,
                "workspaces": [str(workspace.path) for workspace in config.workspaces],
                "missing_workspaces": [str(workspace.path) for workspace in missing],
                "notes": list(config.notes),
            }
        )
        return 4 if missing else 0
    for note in config.notes:
        say(note)
    for workspace in missing:
        say(f"workspace {workspace.name}: there is no folder {workspace.path}")
    if missing:
        return 4
    read_from = config.file or f"no file (defaults; {paths.config_file} does not exist)"
    say(f"The configuration is sound: {read_from}, {plural(len(config.workspaces), 'workspace')}.")
    return 0


def path(arguments: argparse.Namespace) -> int:
    _, paths = load(arguments)
    places = {
        "config": paths.config_file,
        "data": paths.data_dir,
        "models": paths.models_dir,
        "socket": paths.socket,
    }
    if arguments.json:
        print_json({name: str(place) for name, place in places.items()})
    else:
        for name, place in places.items():
            sys.stdout.write(f"{name:8}{place}\n")
    return 0
