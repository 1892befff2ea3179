"""A seeded storm: edits of every kind, and a daemon that is killed at any moment."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.daemon import Daemon, Machine

WORDS = ("river", "stone", "lamp", "cedar", "harbour", "violin", "copper", "meadow", "orbit", "thistle")
FOLDERS = ("memory", "memory/people", "memory/projects/deep", "skills/one", "skills/two")
MOST_FILES = 40


@dataclass
class Storm:
    machine: Machine
    seed: int
    edits: int = 0
    kills: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    # -- edits --------------------------------------------------------------------------------------------

    def begin(self, files: int) -> None:
        for _ in range(files):
            self.write_note()

    def edit(self) -> None:
        """One change of the kind that people, editors and sync tools make."""
        kinds: list[Callable[[], None]] = [
            self.write_note,
            self.write_note,
            self.rewrite_note,
            self.append_to_note,
            self.replace_note,
            self.delete_note,
            self.rename_note,
            self.move_folder,
            self.delete_folder,
        ]
        weights = [3, 3, 4, 3, 3, 3, 3, 1, 0.3]
        if len(self.notes()) > MOST_FILES:
            kinds, weights = [self.delete_note, self.rename_note, self.move_folder], [6, 1, 1]
        self.chance.choices(kinds, weights)[0]()
        self.edits += 1

    def write_note(self) -> None:
        folder = self.chance.choice(FOLDERS)
        self.machine.write(f"{folder}/{self.chance.randrange(1000)}.md", self.text())

    def rewrite_note(self) -> None:
        if note := self.some_note():
            note.write_text(self.text())

    def append_to_note(self) -> None:
        if note := self.some_note():
            with note.open("a") as file:
                file.write(f"\n{self.text()}")

    def replace_note(self) -> None:
        """As editors save: a file beside it takes its place."""
        if note := self.some_note():
            beside = note.with_name(f".{note.name}.swp")
            beside.write_text(self.text())
            beside.replace(note)

    def delete_note(self) -> None:
        if note := self.some_note():
            note.unlink()

    def rename_note(self) -> None:
        if note := self.some_note():
            target = self.machine.root / self.chance.choice(FOLDERS) / f"{self.chance.randrange(1000)}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            note.replace(target)

    def move_folder(self) -> None:
        if folder := self.some_folder():
            target = folder.with_name(f"moved{self.chance.randrange(1000)}")
            if not target.exists():
                folder.rename(target)

    def delete_folder(self) -> None:
        if folder := self.some_folder():
            for parent, folders, files in os.walk(folder, topdown=False):
                for name in files:
                    Path(parent, name).unlink()
                for name in folders:
                    Path(parent, name).rmdir()
            folder.rmdir()

    def text(self) -> str:
        return "\n".join(
            f"## {self.chance.choice(WORDS)}\n\n{' '.join(self.chance.choices(WORDS, k=20))} {self.chance.random()}.\n"
            for _ in range(self.chance.randint(1, 3))
        )

    def notes(self) -> list[Path]:
        return sorted(self.machine.root.rglob("*.md"))

    def some_note(self) -> Path | None:
        notes = self.notes()
        return self.chance.choice(notes) if notes else None

    def some_folder(self) -> Path | None:
        folders = [path for path in sorted(self.machine.root.rglob("*")) if path.is_dir()]
        below = [path for path in folders if len(path.relative_to(self.machine.root).parts) > 1]
        return self.chance.choice(below) if below else None

    # -- kills --------------------------------------------------------------------------------------------

    def run_and_kill(self) -> None:
        """Start the daemon, change files while it starts and works, and kill it at any moment."""
        daemon = self.machine.start()
        if self.chance.random() < 0.8:
            daemon.wait_until_it_answers()
        for _ in range(self.chance.randint(1, 6)):
            self.edit()
        self.kill_at_some_moment(daemon)
        for _ in range(self.chance.randint(0, 2)):  # while nobody looks
            self.edit()

    def kill_at_some_moment(self, daemon: Daemon) -> None:
        try:
            code = daemon.process.wait(self.chance.random() * self.chance.choice((0.1, 1.0, 2.0)))
        except subprocess.TimeoutExpired:
            daemon.kill()
            self.kills += 1
        else:
            raise AssertionError(f"the daemon ended by itself with {code}:\n{daemon.log()}")
        assert "Traceback" not in daemon.log(), daemon.log()
