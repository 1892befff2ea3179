"""Where things are unless the configuration says otherwise, as text.

A search from the command line is over in milliseconds. Importing the settings takes longer than that, and pathlib as
long as a quarter of it.
"""
# For the reason above pathlib is not used here.
# ruff: noqa: PTH111, PTH112, PTH116, PTH123

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

_FALLBACKS = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_CACHE_HOME": ".cache"}


def home_folder(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    return home if home.startswith("/") else os.path.expanduser("~")


def xdg_place(variable: str, environ: Mapping[str, str]) -> str:
    """An XDG base folder; as the specification has it, a relative value counts as unset."""
    value = environ.get(variable, "")
    return value if value.startswith("/") else f"{home_folder(environ)}/{_FALLBACKS[variable]}"


def runtime_place(environ: Mapping[str, str], data: str) -> str:
    """The folder of the socket."""
    value = environ.get("XDG_RUNTIME_DIR", "")
    if value.startswith("/"):
        return f"{value}/memoryd"
    # A shell from cron or su lacks the variable but means the same daemon as the user's session.
    session = f"/run/user/{os.getuid()}"
    if os.path.isdir(session) and os.stat(session).st_uid == os.getuid():
        return f"{session}/memoryd"
    return f"{data}/run"  # private as the data folder is; a name in /tmp could be taken by someone else


def find_usual_socket(environ: Mapping[str, str], config_file: str = "") -> str | None:
    """The socket, where it is there and no setting can mean another one; None: the configuration is to be read.

    What else is wrong with the configuration does not matter: a daemon that runs on goes on answering.
    """
    if told := environ.get("MEMORYD_PATHS__SOCKET"):
        return told if told.startswith("/") and "$" not in told and _is_socket(told) else None
    if environ.get("MEMORYD_PATHS__DATA") or _may_name_paths(environ, config_file):
        return None
    data = f"{xdg_place('XDG_DATA_HOME', environ)}/memoryd"
    usual = f"{runtime_place(environ, data)}/memoryd.sock"
    return usual if _is_socket(usual) else None


def _may_name_paths(environ: Mapping[str, str], config_file: str) -> bool:
    usual = f"{xdg_place('XDG_CONFIG_HOME', environ)}/memoryd/config.toml"
    try:
        with open(config_file or environ.get("MEMORYD_CONFIG") or usual, "rb") as file:
            text = file.read()
    except (OSError, ValueError):
        return False
    return b"paths" in text or b"\\" in text  # in TOML a key can be spelt in escapes


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
