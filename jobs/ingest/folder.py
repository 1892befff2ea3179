"""Facts on disk: ``<data>/facts/<workspace>/<id>.md``, private, each written whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote

from memoryd.jobs.ingest.fact import Fact, read_fact, write_fact
from memoryd.jobs.models.disk import disk_errors, publish
from memoryd.store.failpoints import failpoint

IGNORE: Final = ("**/.*",)
_ID = re.compile(r"[0-9a-f]{16}")
_LARGEST: Final = 65_536  # bytes of a file that may be a fact
_LONGEST_NAME: Final = 120


def folder_name(workspace: str) -> str:
    """The name of a workspace as that of a folder and as a glob that matches only itself."""
    name = quote(workspace, safe=" ")
    name = f"%2E{name[1:]}" if name.startswith(".") else name
    if len(name) > _LONGEST_NAME:
        name = f"{name[:80]}%{blake2b(workspace.encode(), digest_size=8).hexdigest()}"
    return name


def fact_path(fact: Fact) -> str:
    """Relative to the folder, as it is indexed and cited."""
    return f"{folder_name(fact.origin.workspace)}/{fact.id}.md"


class FactFolder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self) -> bool:
        return self.root.is_dir()

    def create(self) -> None:
        with disk_errors(self.root):
            self.root.mkdir(mode=0o700, exist_ok=True)

    def read(self, workspace: str) -> dict[str, Fact]:
        """The facts of a workspace, by id. What cannot be read as one is left alone."""
        return {fact.id: fact for fact in self._read(self.root / folder_name(workspace))}

    def read_all(self) -> list[Fact]:
        folders = sorted(self.root.iterdir()) if self.exists() else []
        return [fact for folder in folders if folder.is_dir() for fact in self._read(folder)]

    def find(self, identity: str) -> Fact | None:
        """The fact of this id, in whichever workspace."""
        if not _ID.fullmatch(identity):
            return None
        return next((fact for fact in self.read_all() if fact.id == identity), None)

    def write(self, fact: Fact) -> None:
        file = self.root / fact_path(fact)
        part = file.with_name(f".{fact.id}.part")
        with disk_errors(file):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            failpoint("facts.write.before")
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as output:
                output.write(write_fact(fact))
            failpoint("facts.write.written")
            publish(part, file)
            failpoint("facts.write.after")

    def remove(self, fact: Fact) -> None:
        file = self.root / fact_path(fact)
        with disk_errors(file):
            failpoint("facts.remove.before")
            file.unlink(missing_ok=True)
            failpoint("facts.remove.after")

    def _read(self, folder: Path) -> Iterator[Fact]:
        try:
            names = sorted(entry.name for entry in os.scandir(folder))
        except FileNotFoundError:
            return
        for name in names:
            identity = name.removesuffix(".md")
            if name == identity or not _ID.fullmatch(identity):
                continue
            try:
                with (folder / name).open("rb") as file:
                    data = file.read(_LARGEST)
            except FileNotFoundError:
                continue
            if fact := read_fact(identity, data.decode("utf-8", "replace")):
                yield fact
