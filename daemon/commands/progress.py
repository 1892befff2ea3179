"""A progress bar for indexing, on a terminal; silence elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from memoryd.store.errors import MemorydError

_REFRESH_S = 0.1


class IndexProgress:
    """Shows how far indexing is for as long as it is entered; asks ``brief`` on a thread of its own."""

    def __init__(self, brief: Callable[[], dict[str, Any]]) -> None:
        self._brief = brief
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> IndexProgress:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _show(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        from memoryd.daemon.commands.output import console

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            task = progress.add_task("starting", total=None)
            while not self._done.wait(_REFRESH_S):
                try:
                    words, done, total = describe(self._brief())
                except MemorydError:
                    return  # the command that waits beside us tells what is wrong
                progress.update(task, description=words, completed=done, total=total)


def describe(brief: dict[str, Any]) -> tuple[str, int, int | None]:
    """What is going on, how much of it is done, and how much there is (None = unknown)."""
    embedder = brief["embedder"]
    if embedder["state"] == "installing":
        return f"installing the model: {embedder['stage']}", embedder["done"], embedder["total"]
    if embedder["state"] in ("starting", "loading"):
        return f"indexed the words of {brief['documents']} files, loading the model", 0, None
    return f"embedding {brief['documents']} files", brief["vectors"], brief["passages"] or None
