"""Whether what a request names is served here: its workspaces, and paths that cannot leave them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from memoryd.store.errors import InvalidParams, PathRefused

_LONGEST_PATH = 4096  # as the kernel takes them
_SHOWN_PATH = 100


def check_workspaces(names: tuple[str, ...], served: Iterable[str]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in served]
    if unknown:
        known = ", ".join(served) or "none"
        raise InvalidParams(f"No workspace is called {', '.join(unknown)}", hint=f"Workspaces served: {known}")
    return names


def inside(path: str) -> str:
    """A path relative to a workspace that cannot leave it."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or len(path) > _LONGEST_PATH:
        shown = path if len(path) <= _SHOWN_PATH else f"{path[:_SHOWN_PATH]}…"
        raise PathRefused(
            f"{shown!r} is not a path inside a workspace", hint="Give it relative to the workspace's folder, without .."
        )
    return "/".join(parts)
