"""Named places where memoryd can be made to fail, for the fault suite alone.

``failpoint(name)`` stands at each boundary that a crash or a failing disk can fall on. It does nothing unless the
environment names it when the program starts::

    MEMORYD_FAILPOINTS="ledger.commit.before=kill@3,vectors.upsert.after=error"

What can happen: ``kill`` (the process ends as by SIGKILL), ``error`` (an I/O error of the kind that the boundary's
library raises), ``full`` (the same for a full disk), ``bug`` (an exception that nobody foresaw), ``pause:SECONDS``.
``@3`` is from the third time on, ``@1-2`` the first two times; ``?FILE`` at the end: only once that file exists.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.store.errors import ConfigInvalid

VARIABLE: Final = "MEMORYD_FAILPOINTS"

POINTS: Final = (
    "ledger.migrate.before",
    "ledger.migrate.after",
    "ledger.commit.before",
    "ledger.commit.after",
    "ledger.checkpoint.before",
    "ledger.checkpoint.after",
    "ledger.reclaim.before",
    "ledger.reclaim.after",
    "ledger.refold.before",
    "ledger.refold.after",
    "document.replace.before",
    "document.replace.after",
    "document.forget.before",
    "document.forget.after",
    "queue.enqueue.before",
    "queue.enqueue.after",
    "transcript.keep.before",
    "transcript.keep.after",
    "transcript.finish.before",
    "transcript.finish.after",
    "transcript.forget.before",
    "transcript.forget.after",
    "queue.claim.after",
    "queue.complete.before",
    "queue.complete.after",
    "queue.settle.before",
    "queue.settle.after",
    "queue.recover.before",
    "queue.recover.after",
    "queue.return.before",
    "queue.return.after",
    "queue.requeue.before",
    "queue.requeue.after",
    "cache.create.before",
    "cache.create.after",
    "cache.note.before",
    "cache.note.after",
    "cache.pack.before",
    "cache.pack.after",
    "cache.keep.before",
    "cache.keep.after",
    "cache.prune.before",
    "cache.prune.after",
    "cache.shrink.before",
    "cache.shrink.after",
    "cache.forget.before",
    "cache.forget.after",
    "vectors.create.before",
    "vectors.create.after",
    "vectors.upsert.before",
    "vectors.upsert.after",
    "vectors.delete.before",
    "vectors.delete.after",
    "vectors.compact.before",
    "vectors.compact.after",
    "vectors.rewrite.before",
    "vectors.rewrite.dropped",
    "vectors.rewrite.after",
    "vectors.convert.before",
    "vectors.convert.begun",
    "vectors.convert.after",
    "vectors.drop.before",
    "vectors.drop.after",
    "generation.register.before",
    "generation.register.after",
    "generation.mark.before",
    "generation.mark.after",
    "generation.unmark.before",
    "generation.unmark.after",
    "generation.flip.before",
    "generation.flip.after",
    "generation.serve.before",
    "generation.serve.after",
    "generation.retire.before",
    "generation.retire.after",
    "generation.forget.before",
    "generation.forget.after",
    "quarantine.take.before",
    "quarantine.take.noted",
    "quarantine.take.moved",
    "quarantine.take.after",
    "maintain.begin",
    "maintain.end",
    "ingest.keep.before",
    "ingest.keep.after",
    "ingest.dismiss.before",
    "ingest.dismiss.after",
    "facts.write.before",
    "facts.write.written",
    "facts.write.after",
    "facts.remove.before",
    "facts.remove.after",
    "model.download.finished",
    "model.download.verified",
    "model.download.renamed",
    "model.convert.finished",
    "model.convert.renamed",
    "model.manifest.written",
    "config.replace.before",
    "config.replace.after",
    "unit.replace.before",
    "unit.replace.after",
)

_SPEC = re.compile(
    r"(?P<name>[\w.]+)=(?P<action>kill|error|full|bug|pause:[\d.]+)(@(?P<first>\d+)(-(?P<last>\d+))?)?(\?(?P<file>.+))?"
)


@dataclass(slots=True)
class _Trigger:
    action: str
    first: int
    last: int | None
    file: Path | None
    reached: int = 0


_armed: dict[str, _Trigger] = {}
_lock = threading.Lock()


def failpoint(name: str) -> None:
    if _armed:
        _reach(name)


def arm(text: str) -> None:
    """Have these points fail from here on, and no others."""
    triggers: dict[str, _Trigger] = {}
    problems: list[str] = []
    for part in filter(None, text.split(",")):
        match = _SPEC.fullmatch(part.strip())
        if match is None or match["name"] not in POINTS:
            problems.append(f"{VARIABLE}: {part!r} names no fail point, or nothing that can happen there")
            continue
        triggers[match["name"]] = _Trigger(
            match["action"],
            int(match["first"] or 1),
            int(match["last"]) if match["last"] else None,
            Path(match["file"]) if match["file"] else None,
        )
    if problems:
        raise ConfigInvalid(tuple(problems), hint=f"{VARIABLE} is for memoryd's own tests: unset it")
    _armed.clear()
    _armed.update(triggers)
    if triggers:
        _warn("failpoints_armed", points=sorted(triggers))


def _reach(name: str) -> None:
    trigger = _armed.get(name)
    if trigger is None or (trigger.file is not None and not trigger.file.exists()):
        return
    with _lock:
        trigger.reached += 1
        if trigger.reached < trigger.first or (trigger.last is not None and trigger.reached > trigger.last):
            return
    _warn("failpoint", point=name, action=trigger.action)
    if trigger.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif trigger.action.startswith("pause:"):
        time.sleep(float(trigger.action.removeprefix("pause:")))
    elif trigger.action == "bug":
        raise RuntimeError(f"fail point {name}")
    else:
        raise _ERRORS.get(name.partition(".")[0], _sqlite_error)(name, trigger.action == "full")


def _sqlite_error(name: str, full: bool) -> Exception:
    error = sqlite3.OperationalError(f"fail point {name}")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_IOERR
    return error


def _lance_error(name: str, full: bool) -> Exception:
    words = f"No space left on device (os error {errno.ENOSPC})" if full else f"I/O error (os error {errno.EIO})"
    return RuntimeError(f"lance error: LanceError(IO): fail point {name}: {words}")


def _file_error(name: str, full: bool) -> Exception:
    number = errno.ENOSPC if full else errno.EIO
    return OSError(number, os.strerror(number), f"fail point {name}")


_ERRORS: Final[dict[str, Callable[[str, bool], Exception]]] = {
    "vectors": _lance_error,
    "facts": _file_error,
    "model": _file_error,
    "quarantine": _file_error,
    "config": _file_error,
    "unit": _file_error,
}


def _warn(event: str, **facts: object) -> None:
    import structlog  # only where something is to fail: every command has fail points, and starts in a blink

    structlog.get_logger().warning(event, **facts)
