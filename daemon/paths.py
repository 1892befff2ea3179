"""Where memoryd keeps its things, and how a folder is made private."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.daemon.usual_places import home_folder, runtime_place, xdg_place
from memoryd.daemon.vector_uri import is_folder
from memoryd.store.errors import ConfigInvalid, StoreFull, StoreUnavailable

SOCKET_BYTES = 107  # sockaddr_un holds 108 bytes, the last one NUL
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True, slots=True)
class Paths:
    """Every file and folder that memoryd reads or writes outside the workspaces."""

    config_file: Path  # read if it exists
    data_dir: Path
    database: Path  # the SQLite ledger
    vectors_dir: Path  # the LanceDB tables, if they are on this machine
    embeddings: Path  # the embedding cache
    ingest: Path  # what a language model answered
    facts_dir: Path  # the facts made of that, as markdown
    lock_file: Path  # held by the one daemon of this data folder
    cache_dir: Path
    models_dir: Path
    socket: Path


def find_paths(config: Config, environ: Mapping[str, str]) -> Paths:
    """The paths that a configuration asks for. Raises ``ConfigInvalid`` if the socket's is too long."""
    where, kept = config.paths, config.store.vectors_uri
    data = Path(where.data) if where.data else xdg_folder("XDG_DATA_HOME", environ) / "memoryd"
    cache = Path(where.cache) if where.cache else xdg_folder("XDG_CACHE_HOME", environ) / "memoryd"
    socket = Path(where.socket) if where.socket else Path(runtime_place(environ, str(data)), "memoryd.sock")
    if (length := len(os.fsencode(socket))) > SOCKET_BYTES:
        raise ConfigInvalid(
            (f"paths.socket: {socket} has {length} bytes; a Unix socket's path has at most {SOCKET_BYTES}",),
            hint="set paths.socket (or MEMORYD_PATHS__SOCKET) to a shorter path in a private folder",
        )
    return Paths(
        config_file=config.file or default_config_file(environ),
        data_dir=data,
        database=data / "ledger.db",
        vectors_dir=Path(kept) if kept and is_folder(kept) else data / "vectors",
        embeddings=data / "embeddings.db",
        ingest=data / "ingest.db",
        facts_dir=data / "facts",
        lock_file=data / "lock",
        cache_dir=cache,
        models_dir=cache / "models",
        socket=socket,
    )


def default_config_file(environ: Mapping[str, str]) -> Path:
    """The file that is read when none is named."""
    return xdg_folder("XDG_CONFIG_HOME", environ) / "memoryd" / "config.toml"


def xdg_folder(variable: str, environ: Mapping[str, str]) -> Path:
    return Path(xdg_place(variable, environ))


def expand_path(text: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """The absolute path that a person wrote: ``~`` and ``$VARIABLES`` expanded, relative to ``folder``.

    Raises ``ValueError`` with what is wrong.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in environ:
            raise ValueError(f"the environment variable {name} is not set")
        return environ[name]

    expanded = VARIABLE.sub(value, text)
    if "\0" in expanded:
        raise ValueError("a path has no NUL character")
    if expanded == "~" or expanded.startswith("~/"):
        return Path(home_folder(environ)) / expanded[2:].lstrip("/")
    try:
        return folder / Path(expanded).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no user {expanded.partition('/')[0][1:]}") from None


def ensure_private(folder: Path) -> None:
    """Makes a folder that only its owner can enter, private from birth; tightens one that is ours already.

    Raises ``ConfigInvalid`` for a symlink, a file or another user's folder, and ``StoreUnavailable`` or
    ``StoreFull`` where the folder cannot be made.
    """
    hint = "choose the place with paths.data, paths.cache or paths.socket in the configuration"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():
            raise ConfigInvalid((f"{folder} is a symlink",), hint=f"name the real folder: {hint}")
        # Checked and changed through one descriptor, so that nothing can be put in its place in between.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.getuid():
                raise ConfigInvalid((f"{folder} belongs to user {found.st_uid}, not to you",), hint=hint)
            if found.st_mode & 0o077:
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & 0o700)
        finally:
            os.close(descriptor)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigInvalid((f"{error.filename} is not a folder",), hint=hint) from error
    except OSError as error:
        failure = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreUnavailable
        raise failure(f"cannot make {folder}: {error.strerror}", hint=hint) from error
