"""What every command takes, and what it leads to: the configuration, the paths, a client."""

from __future__ import annotations

import os
from collections.abc import Callable

TYPE_CHECKING = False  # see plain_words
if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from memoryd.daemon.client import Client
    from memoryd.daemon.config import Config
    from memoryd.daemon.paths import Paths

AddCommon = Callable[..., None]


def add_common(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=_path,
        help="read this configuration instead of $XDG_CONFIG_HOME/memoryd/config.toml",
    )
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON alone on stdout, for programs")


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)


def load(arguments: argparse.Namespace) -> tuple[Config, Paths]:
    from pathlib import Path

    from memoryd.daemon.config_file import load_config
    from memoryd.daemon.paths import find_paths

    config = load_config(
        arguments.config, os.environ, Path.cwd(), workspaces=getattr(arguments, "workspaces", None) or ()
    )
    return config, find_paths(config, os.environ)


def connect(arguments: argparse.Namespace, timeout: float | None = 60.0) -> Client:
    from memoryd.daemon.client import Client

    return Client(_socket(arguments), timeout)


def _socket(arguments: argparse.Namespace) -> Path | str:
    """Where the daemon listens. One that runs on goes on answering while its configuration file has problems."""
    from memoryd.daemon.usual_places import find_usual_socket

    if (found := find_usual_socket(os.environ, os.fspath(arguments.config or ""))) is not None:
        return found
    from memoryd.daemon.config import Config, Locations
    from memoryd.daemon.paths import find_paths
    from memoryd.store.errors import ConfigInvalid

    try:
        return load(arguments)[1].socket
    except ConfigInvalid:
        usual = Locations(socket=os.environ.get("MEMORYD_PATHS__SOCKET", ""))
        socket = find_paths(Config(paths=usual), os.environ).socket
        if not socket.is_socket():
            raise
        return socket
