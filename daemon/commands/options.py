"""What every command takes, and what it leads to: the configuration, the paths, a client."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoryd.daemon.client import Client
    from memoryd.daemon.config import Config
    from memoryd.daemon.paths import Paths

AddCommon = Callable[..., None]
Subparsers = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_common(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="read this configuration instead of $XDG_CONFIG_HOME/memoryd/config.toml",
    )
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON alone on stdout, for programs")


def load(arguments: argparse.Namespace) -> tuple[Config, Paths]:
    from memoryd.daemon.config_file import load_config
    from memoryd.daemon.paths import find_paths

    config = load_config(
        arguments.config, os.environ, Path.cwd(), workspaces=getattr(arguments, "workspaces", None) or ()
    )
    return config, find_paths(config, os.environ)


def connect(arguments: argparse.Namespace, timeout: float | None = 60.0) -> Client:
    from memoryd.daemon.client import Client

    _, paths = load(arguments)
    return Client(paths.socket, timeout)


def version_text() -> str:
    class Version:
        """Looked up only when it is printed: reading package metadata takes longer than a search."""

        def __mod__(self, _: object) -> str:
            from importlib.metadata import version

            return f"memoryd {version('memoryd')}"

    return Version()  # type: ignore[return-value]  # argparse only formats it
