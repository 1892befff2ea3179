"""What is done to the ledger before the lanes go by it: it must fit the configuration, and what we died of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoryd.jobs.chunking import CHUNKER_VERSION
from memoryd.jobs.index_text import READING_VERSION, is_set_aside, set_aside
from memoryd.jobs.index_transcript import set_transcript_aside
from memoryd.jobs.sessions.segments import SEGMENTS_VERSION
from memoryd.store.document_rows import distrust_scopes
from memoryd.store.job_rows import Failure, add_job

if TYPE_CHECKING:
    from memoryd.daemon.engine import Engine


def prepare_ledger(engine: Engine) -> None:
    _forget_unserved(engine)
    _expire_if_read_differently(engine)


def _forget_unserved(engine: Engine) -> None:
    for name in engine.documents.workspaces():
        if name not in engine.workspaces:
            engine.documents.forget_workspace(name, engine.clock())
    engine.queue.forget_unserved(engine.workspaces)


def set_aside_crashed(engine: Engine, died: Sequence[Failure]) -> None:
    """Note the files that memoryd dies of as looked at, so that only a change brings them back."""
    for crashed in engine.queue.crashed("index"):
        workspace = engine.workspaces[crashed.workspace]
        if workspace.transcripts is not None:
            known = engine.transcripts.find(crashed.workspace, crashed.path)
            if crashed in died or known is None or known.skipped is None:
                set_transcript_aside(workspace, crashed.path, crashed.reason, engine.transcripts, engine.clock)
        elif crashed in died or not is_set_aside(workspace, crashed.path, engine.documents):
            set_aside(workspace, crashed.path, crashed.reason, engine.documents, engine.index_settings, engine.clock)


def _expire_if_read_differently(engine: Engine) -> None:
    """Read everything again if it is not read and split as it was when the ledger was written."""
    settings = engine.index_settings
    for workspace in engine.workspaces.values():
        manner = f"{READING_VERSION} {settings} {workspace.evergreen}"
        if workspace.transcripts is not None:  # a segment is not split by itself: its transcript is read again
            manner = f"{manner} {SEGMENTS_VERSION} {CHUNKER_VERSION} {workspace.transcripts}"
        with engine.database.write() as sql:  # all or nothing: a crash in between would leave the old chunks for good
            read_differently = engine.database.remember(f"reading:{workspace.name}", manner)
            split_differently = engine.database.remember(f"splitting:{workspace.name}", CHUNKER_VERSION)
            scoped_differently = engine.database.remember(f"scopes:{workspace.name}", f"{workspace.scopes}")
            if scoped_differently:
                distrust_scopes(sql, workspace.name)
            if read_differently or scoped_differently:
                engine.documents.expire(workspace.name)
            elif split_differently and workspace.transcripts is None:
                for path in engine.documents.known(workspace.name):
                    add_job(sql, "resplit", workspace.name, path, engine.clock())
