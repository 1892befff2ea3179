"""The workspaces as they lie on disk: what is passed over and why, odd dates, and which languages they are in."""

from __future__ import annotations

import os
import time
from collections.abc import Sized
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import islice
from pathlib import Path

from memoryd.daemon.doctor.finding import Finding, ok, problem, warning
from memoryd.daemon.doctor.folders import NETWORK, file_system_of
from memoryd.jobs.dates import document_date
from memoryd.jobs.language import advise_model, cjk_share
from memoryd.jobs.markdown import read_front_matter
from memoryd.jobs.reading import decode_text, read_file
from memoryd.jobs.workspace import Workspace, scan
from memoryd.store.errors import MemorydError

_SAMPLE = 2000  # files that are opened
_HEAD = 16_384  # characters of each that languages are judged by
_AHEAD_S = 600  # a file's date may be ahead by this much: another machine's clock
_FAR_DAYS = 2  # a note's date may be ahead by this much: time zones, and a plan for tomorrow


@dataclass(slots=True)
class NotesFacts:
    """What a look at one workspace found."""

    name: str
    root: Path
    unavailable: str | None = None  # why it cannot be looked at
    hint: str | None = None
    files: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)  # path -> why
    passed_over: dict[str, str] = field(default_factory=dict)
    written_ahead: list[str] = field(default_factory=list)  # files whose date on disk is in the future
    dated_ahead: dict[str, date] = field(default_factory=dict)  # notes that say so themselves
    share: float = 0.0  # of Chinese, Japanese and Korean letters
    ignores_case: bool = False
    file_system: str = ""


def gather_notes(workspace: Workspace, max_bytes: int, mounts: str) -> NotesFacts:
    facts = NotesFacts(workspace.name, workspace.root)
    try:
        found = scan(workspace)
    except MemorydError as error:
        facts.unavailable, facts.hint = error.message, error.hint
        return facts
    now, horizon = time.time(), date.today() + timedelta(days=_FAR_DAYS)  # noqa: DTZ011  a person's day is the local one
    facts.files = len(found.files)
    facts.unreadable, facts.passed_over = dict(found.unreadable), dict(found.skipped)
    facts.file_system = file_system_of(workspace.root, mounts)
    facts.ignores_case = ignores_case(workspace.root, next(iter(found.files), None))
    texts: list[str] = []
    for path, signature in found.files.items():
        if int(signature.split(":")[1]) / 1e9 > now + _AHEAD_S:
            facts.written_ahead.append(path)
    for path in islice(sorted(found.files), _SAMPLE):
        text = _read(workspace, path, max_bytes, facts)
        written = document_date(path, read_front_matter(text).values if text else {})
        if written and written > horizon:
            facts.dated_ahead[path] = written
        texts.append((text or "")[:_HEAD])
    facts.share = cjk_share(texts)
    return facts


def _read(workspace: Workspace, path: str, max_bytes: int, facts: NotesFacts) -> str | None:
    try:
        file = read_file(workspace.root / path, workspace.root, max_bytes)
    except MemorydError as error:
        facts.unreadable[path] = error.message
        return None
    if file is None:
        return None
    if file.too_large:
        facts.passed_over[path] = f"{file.size:,} bytes, more than index.max_file_bytes"
        return None
    text, _ = decode_text(file.data)
    if text is None:
        facts.passed_over[path] = "not text"
    return text


def ignores_case(root: Path, path: str | None) -> bool:
    """Whether a file is found under its name in the other case too, and is not two files of one content."""
    if path is None:
        return False
    file = root / path
    other = file.with_name(file.name.swapcase())
    try:
        return (
            other.name != file.name
            and os.path.samestat(file.lstat(), other.lstat())
            and other.name not in {entry.name for entry in file.parent.iterdir()}
        )
    except OSError:
        return False


def _count(files: Sized) -> str:
    return "1 file" if len(files) == 1 else f"{len(files):,} files"


def check_workspace(facts: NotesFacts) -> Finding:
    name = f"workspace {facts.name}"
    if facts.unavailable:
        return problem(
            name, facts.unavailable, facts.hint or f"Make {facts.root} readable, or change its [[workspace]]"
        )
    if facts.unreadable:
        return problem(
            name,
            f"cannot be read, and so not found: {_count(facts.unreadable)}",
            f"chmod -R u+rX {facts.root}",
            tuple(f"{path}: {why}" for path, why in sorted(facts.unreadable.items())),
        )
    if not facts.files:
        return warning(
            name, f"no file in {facts.root} matches its patterns", "Write MEMORY.md or memory/*.md, or set include"
        )
    return ok(name, f"{_count(range(facts.files))} in {facts.root}")


def check_passed_over(facts: NotesFacts) -> Finding:
    name = f"skipped files in {facts.name}"
    if not facts.passed_over:
        return ok(name, "none: no link out of it, nothing too large, no binary file")
    return warning(
        name,
        f"not indexed: {_count(facts.passed_over)}",
        "Move what links lead to into the workspace, raise index.max_file_bytes, or add them to ignore",
        tuple(f"{path}: {why}" for path, why in sorted(facts.passed_over.items())),
    )


def check_dates(facts: NotesFacts) -> Finding:
    name = f"dates in {facts.name}"
    if facts.dated_ahead:
        return warning(
            name,
            f"dated ahead, and counted as today's: {_count(facts.dated_ahead)}",
            "Correct the dates in their front matter or names, if they are wrong",
            tuple(f"{path}: {day}" for path, day in sorted(facts.dated_ahead.items())),
        )
    if facts.written_ahead:
        return warning(
            name,
            f"written in the future, so a clock is or was wrong: {_count(facts.written_ahead)}",
            "Check the clocks of this machine and of those that sync with it (timedatectl)",
            tuple(sorted(facts.written_ahead)),
        )
    return ok(name, "none is in the future")


def check_languages(facts: NotesFacts, model: str) -> Finding:
    name = f"languages in {facts.name}"
    advice = advise_model(facts.share, model)
    if advice:
        return warning(name, advice.message, advice.remedy)
    return ok(name, f"{facts.share:.0%} Chinese, Japanese and Korean letters")


def check_notes_file_system(facts: NotesFacts) -> Finding:
    name = f"file system of {facts.name}"
    if facts.file_system in NETWORK:
        return warning(
            name,
            f"{facts.root} is on {facts.file_system}: inotify does not tell what other machines change there; the "
            "regular comparison finds it",
            "Set schedule.reconcile_minutes lower, such as 1",
        )
    if facts.ignores_case:
        return warning(
            name,
            f"{facts.root} does not tell capital letters: a note renamed in case alone may keep its old name",
            "After such a rename run memoryd index",
        )
    return ok(name, f"{facts.file_system or 'unknown'}, and inotify works there")
