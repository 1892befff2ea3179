"""The watcher: notices changes and says which files to look at. The only module that imports watchdog.

Events are hints. Whatever is not plain (a folder moved, events lost, a root that went away) becomes a request
to look at the disk. Where inotify cannot be had, looking at the disk every few seconds takes its place.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog
from watchdog import events
from watchdog.observers.api import BaseObserver, ObservedWatch
from watchdog.observers.inotify import InotifyObserver

from memoryd.daemon.debounce import Debounce
from memoryd.daemon.ground import Ground
from memoryd.jobs.workspace import Workspace
from memoryd.store.errors import MemorydError
from memoryd.store.native_thread import name_thread

log = structlog.get_logger()

_MOST_RESCANS = 8  # folders that are looked at one by one; more, and the whole workspace is
_FEW_S = 60.0  # between two looks where the ground tells of most that they are for
_WANTED = [  # opening and reading a file is no change, so the kernel is not asked to tell us
    events.FileClosedEvent,
    events.FileCreatedEvent,
    events.FileModifiedEvent,
    events.FileAttribEvent,  # who may read it
    events.FileMovedEvent,
    events.FileDeletedEvent,
    events.DirCreatedEvent,
    events.DirMovedEvent,
    events.DirDeletedEvent,
]

Mode = Literal["inotify", "polling", "stopped"]


@dataclass(frozen=True, slots=True)
class WatcherStatus:
    mode: Mode
    reason: str | None  # why it is polling
    last_event: float | None  # unix time


class Watcher(events.FileSystemEventHandler):
    """Watches one workspace from ``start`` to ``stop``."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        on_files: Callable[[list[str]], None],
        on_rescan: Callable[[str], None],
        settle_s: float,
        poll_s: float = 3.0,  # between two looks at the disk where there is no inotify
        check_s: float = 5.0,  # between two looks at whether what is watched is still what is there
        ground: Ground | None = None,  # tells when it may not be: the looks are few then
    ) -> None:
        self.workspace = self._workspace = workspace
        self.settle_s = settle_s
        self._turned_at = time.monotonic()  # when its own thread last came round
        self._on_files = on_files
        self._on_rescan = on_rescan
        self._poll_s = poll_s
        self._check_s = check_s
        self._ground = ground
        self._moved = False  # whether the ground has told so since the last look
        self._debounce = Debounce(settle_s)
        self._rest_s = settle_s / 2  # between two looks at folders, so that those which change together are one look
        self._rested = 0.0
        self._changed = threading.Condition()
        self._rescans: set[str] = set()
        self._stopping = False
        self._observer: BaseObserver | None = None
        self._watches: dict[str, tuple[ObservedWatch, tuple[int, int]]] = {}  # folder -> watch, what it watches
        self._root_id: tuple[int, int] | None = None
        self._reason: str | None = None
        self._last_event: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"watcher-{workspace.name}", daemon=True)
        self._complaints = _Complaints(self._lost_events)

    def start(self) -> None:
        logging.getLogger("watchdog").addHandler(self._complaints)
        # watchdog warns at length of a folder that it has found by an event and by a look as well.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        self._observe()
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        if self._ground:
            self._ground.leave(self._workspace.root)
        self._unobserve()
        logging.getLogger("watchdog").removeHandler(self._complaints)

    def alive(self) -> bool:
        observer = self._observer
        return self._thread.is_alive() and (observer is None or _is_alive(observer))

    def silence_s(self) -> float:
        """For how long its thread has not come round; it does every minute."""
        return time.monotonic() - self._turned_at

    def status(self) -> WatcherStatus:
        mode: Mode = "stopped" if not self._thread.is_alive() else "inotify" if self._observer else "polling"
        return WatcherStatus(mode, self._reason, self._last_event)

    # -- events, on watchdog's thread ---------------------------------------------------------------------

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        paths = [self._relative(path) for path in (event.src_path, event.dest_path) if path]
        inside = [path for path in paths if path is not None]
        with self._changed:
            for path in inside:
                if event.is_directory:
                    if path == "" or self._workspace.may_hold(path):
                        self._last_event = time.time()
                        self._rescans.add(path)
                elif self._workspace.covers(path):
                    self._last_event = time.time()
                    finished = event.event_type not in (events.EVENT_TYPE_MODIFIED, events.EVENT_TYPE_CREATED)
                    self._debounce.note(path, time.monotonic(), finished=finished)
            self._changed.notify_all()

    def _lost_events(self) -> None:
        with self._changed:
            self._rescans.add("")
            self._changed.notify_all()

    def _relative(self, path: bytes | str) -> str | None:
        """The path inside the workspace; None = outside, or with a name that is not UTF-8."""
        try:
            relative = Path(os.fsdecode(path)).relative_to(self._workspace.root).as_posix()
            relative.encode()
        except ValueError:
            return None
        return "" if relative == "." else relative

    # -- handing over, on the watcher's own thread --------------------------------------------------------

    def _run(self) -> None:
        name_thread()
        while True:
            self._turned_at = time.monotonic()
            with self._changed:
                self._wait_for_something_to_do()
                if self._stopping:
                    return
                self._moved = False
                files = self._debounce.take_due(time.monotonic())
                rescans = self._take_rescans(time.monotonic())
            before = self._observer
            if rescans or before is None or not self._watches_what_is_there():
                self._observe()
            if self._observer is None or self._observer is not before or len(rescans) > _MOST_RESCANS:
                rescans.add("")  # what happened unseen is found by looking at everything
            if "" in rescans:
                rescans = {""} if self._workspace.root.is_dir() else set()
            try:
                if files:
                    self._on_files(files)
                for folder in sorted(rescans):
                    self._on_rescan(folder)
            except MemorydError as error:  # a full disk, for instance: look at everything when it is over
                log.warning("changes_not_queued", workspace=self._workspace.name, code=error.code, reason=error.message)
                self._wait(self._poll_s)
                self._lost_events()

    def _take_rescans(self, now: float) -> set[str]:
        if not self._rescans or self._rested > now:
            return set()
        taken, self._rescans = self._rescans, set()
        self._rested = now + self._rest_s
        return taken

    def _next_due(self) -> float | None:
        due = [at for at in (self._debounce.next_due(), self._rested if self._rescans else None) if at is not None]
        return min(due, default=None)

    def _something_to_do(self) -> bool:
        due = self._next_due()
        return self._stopping or self._moved or (due is not None and due <= time.monotonic())

    def _wait_for_something_to_do(self) -> None:
        """Or until it is time to see for ourselves. Each event may change what is due first."""
        wake = time.monotonic() + self._look_s()
        while not self._something_to_do() and (now := time.monotonic()) < wake:
            due = self._next_due()
            self._changed.wait((wake if due is None else min(due, wake)) - now)

    def _look_s(self) -> float:
        if self._observer is None:
            return self._poll_s
        return _FEW_S if self._ground and self._ground.alive() else self._check_s

    def _note_move(self) -> None:
        with self._changed:
            self._moved = True
            self._changed.notify_all()

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    # -- watching -----------------------------------------------------------------------------------------

    def _observe(self) -> None:
        """Have inotify watch the folders that are there now; poll if it cannot."""
        try:
            root_id = _identity(self._workspace.root)
            if self._observer is None or root_id != self._root_id or not _is_alive(self._observer):
                self._unobserve()
                # Full: a file moved in from outside is told apart from one that is only being made.
                observer = InotifyObserver(generate_full_events=True)
                observer.start()
                self._observer = observer
                self._root_id = root_id
            if self._ground:
                self._ground.follow(self._workspace.root, self._note_move)  # before the look at what is there
            self._schedule(self._observer)
        except (OSError, RuntimeError) as error:
            self._unobserve()
            reason = (isinstance(error, OSError) and error.strerror) or str(error)
            if reason != self._reason:
                log.warning("watcher_polls", workspace=self._workspace.name, reason=reason)
            self._reason = reason
        else:
            if self._reason:
                log.info("watcher_recovered", workspace=self._workspace.name)
            self._reason = None

    def _schedule(self, observer: BaseObserver) -> None:
        wanted = self._wanted()
        for folder, (watch, identity) in list(self._watches.items()):
            if wanted.get(folder) != (watch.is_recursive, identity):  # gone, made anew, or to be watched otherwise
                observer.unschedule(watch)
                del self._watches[folder]
        for folder, (recursive, identity) in wanted.items():
            if folder not in self._watches:
                path = str(self._workspace.root / folder)
                watch = observer.schedule(self, path, recursive=recursive, event_filter=_WANTED)
                self._watches[folder] = (watch, identity)
        # watchdog passes over a folder inside that it cannot watch, and does not tell. Where one watch more
        # cannot be had, theirs could not either.
        observer.unschedule(observer.schedule(self, "/", event_filter=[events.DirDeletedEvent]))

    def _watches_what_is_there(self) -> bool:
        """A disk that is unmounted, or a root that is moved away, takes its watches along without an event."""
        try:
            wanted = self._wanted()
        except OSError:
            return False
        if self._observer is None or not _is_alive(self._observer):
            return False
        watched = {folder: (watch.is_recursive, identity) for folder, (watch, identity) in self._watches.items()}
        return wanted == watched

    def _wanted(self) -> dict[str, tuple[bool, tuple[int, int]]]:
        """Folder -> whether all below it is to be watched, and what it is now."""
        return {
            folder: (recursive, _identity(self._workspace.root / folder)) for folder, recursive in self._plan().items()
        }

    def _plan(self) -> dict[str, bool]:
        """Folder -> whether all below it is watched. The root always is, so that folders that appear are seen."""
        plan = {"": False}
        for folder in self._workspace.folders():
            there = folder
            while there and not (self._workspace.root / there).is_dir():
                there = there.rpartition("/")[0]
            plan[there] = plan.get(there, False) or (there == folder and self._workspace.is_deep(folder))
        return plan

    def _unobserve(self) -> None:
        observer, self._observer = self._observer, None
        self._watches.clear()
        if observer is not None:
            observer.stop()
            if observer.is_alive():
                observer.join()


class _Complaints(logging.Handler):
    """watchdog reports an overflow of the kernel's queue in its log alone; any complaint means: look yourself."""

    def __init__(self, lost_events: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._lost_events = lost_events

    def emit(self, _record: logging.LogRecord) -> None:
        self._lost_events()


def _is_alive(observer: BaseObserver) -> bool:
    """Whether all of watchdog's threads run: one that died of an error leaves the others waiting for it."""
    reader = getattr(observer, "_inotify_fd", None)
    threads = [observer, *observer.emitters, *([reader] if isinstance(reader, threading.Thread) else [])]
    return all(thread.is_alive() for thread in threads)


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino
