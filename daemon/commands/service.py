"""``memoryd service``: memoryd as a systemd user service, from installation to its log."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memoryd.daemon.service_manager import ServiceManager

_ACTIONS = {
    "install": "write the unit files, enable them and start the service; repeat it after an upgrade",
    "uninstall": "stop the service and remove the unit files that install wrote",
    "start": "start the service and its socket",
    "stop": "stop the service and its socket",
    "restart": "stop and start the service",
    "logs": "show the service's log",
    "status": "tell whether the service runs, and whether its unit files are current; exit code 3 if it does not run",
}


_FUTURE = {
    "wrote": "write",
    "reloaded": "reload",
    "enabled": "enable",
    "started": "start",
    "restarted": "restart",
    "stopped": "stop",
    "removed": "remove",
}
_DONE = {"start": "started", "stop": "stopped", "restart": "restarted"}


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "service",
        help="install, start, stop and look after the systemd user service",
        description="memoryd as a systemd user service. Without systemd, 'memoryd run' serves in the foreground.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, words in _ACTIONS.items():
        sub = actions.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        if name in ("install", "uninstall"):
            sub.add_argument("--dry-run", action="store_true", help="only say what would be done")
            sub.add_argument("--force", action="store_true", help="also replace or remove a unit file changed by hand")
        if name == "install":
            sub.add_argument("--no-start", action="store_true", help="do not start it before the next login")
        if name == "logs":
            sub.add_argument("--follow", "-f", action="store_true", help="go on until Ctrl-C")
            sub.add_argument(
                "--lines", "-n", type=int, default=100, metavar="N", help="how many entries (default: 100)"
            )
        add_common(sub)
        sub.set_defaults(run=_RUNS.get(name, _command), action=name)


def _install(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.service import describe_setup, install, plan_setup, units_folder

    manager = _manager(arguments)
    config, paths = load(arguments)
    setup = plan_setup(config, paths, arguments.config, os.environ, namespaces=manager.may_have_namespaces())
    if not arguments.dry_run and not arguments.no_start:
        _check_nobody_else(paths.socket, manager)
    notes = list(describe_setup(setup, config, os.environ))
    steps = install(setup, units_folder(os.environ), manager, force=arguments.force, start=not arguments.no_start)
    done = _tell(steps, arguments)
    if manager.lingers() is False:
        notes.append("it stops when you log out for the last time; to have it run always: loginctl enable-linger")
    if arguments.json:
        print_json({"dry_run": arguments.dry_run, "steps": done, "notes": notes})
    else:
        say("\n".join(f"note: {note}" for note in notes) or "Ask it: memoryd search, memoryd status")
    return 0


def _uninstall(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.service import uninstall, units_folder

    manager = _manager(arguments)
    done = _tell(uninstall(units_folder(os.environ), manager, force=arguments.force), arguments)
    if arguments.json:
        print_json({"dry_run": arguments.dry_run, "steps": done})
    elif any(step.startswith("removed") for step in done):
        say("The index and the models are still there: 'memoryd config path' says where.")
    return 0


def _command(arguments: argparse.Namespace) -> int:
    """start, stop and restart: of the socket too, which would start the service again at the next question."""
    from memoryd.daemon.service import UNITS
    from memoryd.daemon.units import SERVICE
    from memoryd.store.errors import ServiceFailed

    action = arguments.action
    manager = _manager(arguments)
    if not manager.is_known():
        raise ServiceFailed("memoryd is not installed as a service", hint="Run 'memoryd service install' first")
    units = (SERVICE,) if action == "restart" else UNITS  # across a restart the socket keeps who asks meanwhile
    if action == "stop":
        manager.run(action, *units)
    else:
        _check_nobody_else(load(arguments)[1].socket, manager)
        manager.start(action, *units)
    _tell([f"{_DONE[action]} {' and '.join(units)}"], arguments)
    if arguments.json:
        print_json({"units": list(units), "active": manager.is_active()})
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.service import describe_units, plan_setup, units_folder
    from memoryd.store.errors import MemorydError

    manager = _manager(arguments)
    try:
        config, paths = load(arguments)
        setup = plan_setup(config, paths, arguments.config, os.environ, namespaces=manager.may_have_namespaces())
    except MemorydError:  # the units can be told without it, if not whether they are what would be written now
        setup = None
    shown = manager.show()
    facts = {
        "active": manager.is_active(),
        "state": f"{shown.get('ActiveState', 'unknown')} ({shown.get('SubState', 'unknown')})",
        "enabled": shown.get("UnitFileState", "") == "enabled",
        "pid": int(shown.get("MainPID", "0") or 0) or None,
        "since": shown.get("ActiveEnterTimestamp") or None,
        "restarts": int(shown.get("NRestarts", "0") or 0),
        "result": shown.get("Result") or None,
        "says": shown.get("StatusText") or None,
        "lingering": manager.lingers(),
    }
    folder = units_folder(os.environ)
    units = {str(folder / name): state for name, state in describe_units(folder, setup).items()}
    if arguments.json:
        print_json({**facts, "units": units})
    else:
        for name, value in facts.items():
            sys.stdout.write(f"{name:10}{_word(value)}\n")
        for file, state in units.items():
            sys.stdout.write(f"{'unit':10}{file}: {state}\n")
        if "outdated" in units.values():
            say("'memoryd service install' brings the unit files up to date.")
    return 0 if manager.is_active() else 3


def _logs(arguments: argparse.Namespace) -> int:
    words = [f"--lines={arguments.lines}", *(["--follow"] if arguments.follow else ["--no-pager"])]
    return _manager(arguments).follow_logs(*words, *(["--output=json"] if arguments.json else []))


def _manager(arguments: argparse.Namespace) -> ServiceManager:
    from memoryd.daemon.service_manager import ServiceManager

    manager = ServiceManager(dry=getattr(arguments, "dry_run", False))
    if not manager.dry:
        manager.check(foreground="memoryd run" + (f" --config {arguments.config}" if arguments.config else ""))
    return manager


def _check_nobody_else(socket: Any, manager: ServiceManager) -> None:
    """systemd would take the socket's name from a daemon in the foreground, which then nobody could ask any more."""
    from memoryd.daemon.client import Client
    from memoryd.daemon.units import SOCKET
    from memoryd.store.errors import AlreadyRunning, MemorydError

    if manager.is_active() or manager.is_active(SOCKET):
        return
    try:
        with Client(socket, timeout=5) as client:
            pid = client.call("ping")["pid"]
    except MemorydError:
        return
    raise AlreadyRunning(
        f"memoryd runs already, outside of the service (process {pid})", hint=f"Stop it first: kill {pid}"
    )


def _tell(steps: Iterable[str], arguments: argparse.Namespace) -> list[str]:
    """Each step as it is done; of a dry run, as what would be done."""
    told = []
    for step in steps:
        told.append(step)
        if not arguments.json:
            say(_in_future(step) if getattr(arguments, "dry_run", False) else step)
    return told


def _in_future(step: str) -> str:
    """A step of a dry run: what would be done."""
    done, _, what = step.partition(" ")
    verb = _FUTURE.get(done)
    return f"would {verb} {what}" if verb else step


def _word(value: object) -> str:
    return "-" if value is None else {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


_RUNS = {"install": _install, "uninstall": _uninstall, "logs": _logs, "status": _status}
