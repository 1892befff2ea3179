"""``memoryd config``: what is in force, whether it is sound, where it is read from, and changing it live."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from memoryd.daemon.commands.assignments import check_in_search, search_table, split_assignments, whole_key
from memoryd.daemon.commands.options import AddCommon, connect, load
from memoryd.daemon.commands.output import plural, print_json, say


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "config",
        help="show, check, locate or change the configuration",
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
    _add_get(actions, add_common)
    _add_set(actions, add_common)


def _add_get(actions: Any, add_common: AddCommon) -> None:
    words = "print the settings of [search] that the running daemon answers by"
    sub = actions.add_parser("get", help=words, description=words.capitalize() + ".")
    sub.add_argument("key", nargs="?", metavar="KEY", help="only this setting or table, e.g. fusion or search.weights")
    add_common(sub)
    sub.set_defaults(run=get)


def _add_set(actions: Any, add_common: AddCommon) -> None:
    words = "change settings of [search] in the running daemon, from the next query on"
    sub = actions.add_parser("set", help=words, description=words.capitalize() + ", until it stops.")
    sub.add_argument("assignments", nargs="*", metavar="KEY=VALUE", help="e.g. fusion=rrf or search.weights.vector=0")
    sub.add_argument("--persist", action="store_true", help="also write them into the configuration file")
    sub.add_argument("--reset", action="store_true", help="first go back to what is configured")
    add_common(sub)
    sub.set_defaults(run=set_live)


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


def get(arguments: argparse.Namespace) -> int:
    chosen = _chosen(arguments.key) if arguments.key else None
    with connect(arguments) as client:
        described = client.call("settings.get")
    if arguments.json and chosen is None:
        print_json(described)
    elif arguments.json:
        print_json({f"search.{key}": _look_up(described, key) for key in chosen or ()})
    else:
        _print_settings(described, described["origin"] if chosen is None else chosen)
    return 0


def set_live(arguments: argparse.Namespace) -> int:
    params = {"persist": arguments.persist, "reset": arguments.reset, "settings": search_table(arguments.assignments)}
    with connect(arguments) as client:
        described = client.call("settings.set", params)
    if arguments.json:
        print_json(described)
        return 0
    _print_settings(described, [key.removeprefix("search.") for key in split_assignments(arguments.assignments)])
    if arguments.persist:
        say(f"Written to {described['file']}.")
    if described["changed"]:
        say(f"{plural(len(described['changed']), 'setting')} not as configured, until memoryd stops or --reset.")
    else:
        say("Every setting is as configured.")
    return 0


def _chosen(typed: str) -> list[str]:
    """The keys inside [search] that are meant: of a table, all in it."""
    from memoryd.daemon.live_settings import SEARCH_SETTINGS

    table = typed.removeprefix("search.") + "."
    inside = [key for key in SEARCH_SETTINGS if key.startswith(table) or typed == "search"]
    return inside or [check_in_search(whole_key(typed)).removeprefix("search.")]


def _print_settings(described: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        found = _look_up(described, key)
        configured = f", configured: {json.dumps(found['configured'])}" if "configured" in found else ""
        sys.stdout.write(f"search.{key} = {json.dumps(found['value'])}  # from: {found['origin']}{configured}\n")


def _look_up(described: dict[str, Any], key: str) -> dict[str, Any]:
    value = described["settings"]
    for name in key.split("."):
        value = value[name]
    found = {"value": value, "origin": described["origin"][key]}
    if change := described["changed"].get(key):
        found["configured"] = change["configured"]
    return found
