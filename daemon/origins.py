"""Where a hit of a transcript comes from: the file itself, and the lines of it in which it was said."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from memoryd.jobs.workspace import Workspace
from memoryd.store.database import Database
from memoryd.store.model import SESSIONS, document_id


def find_origin(
    database: Database, workspace: Workspace, path: str, start_line: int, end_line: int
) -> dict[str, Any] | None:
    """The transcript behind lines of a segment; None where the document is none, or gone."""
    with database.read() as sql:
        row = sql.execute(
            "SELECT front_matter FROM documents WHERE id = ? AND source = ?",
            (document_id(workspace.name, path), SESSIONS),
        ).fetchone()
    if row is None:
        return None
    facts: Mapping[str, Any] = json.loads(row[0])
    first, last = turn_lines(facts["places"], start_line, end_line)
    file = workspace.file_of(path)
    return {
        "workspace": workspace.name,
        "path": file,
        "start_line": first,
        "end_line": last,
        "citation": f"{file}#L{first}-L{last}",
        "file": str(workspace.root / file),
        "format": facts["format"],
        "session": facts["session"],
    }


def turn_lines(places: list[list[int]], start_line: int, end_line: int) -> tuple[int, int]:
    """The lines of the file whose turns begin in, or reach into, these lines of the text."""
    starts = [line for line, _ in places]
    first = max(0, bisect_right(starts, start_line) - 1)
    last = max(first, bisect_right(starts, end_line) - 1)
    return places[first][1], places[last][1]


def add_origins(database: Database, workspaces: Mapping[str, Workspace], hits: list[dict[str, Any]]) -> None:
    """To each hit of a transcript, its origin."""
    for hit in hits:
        workspace = workspaces.get(hit["workspace"])
        if hit["source"] == SESSIONS and workspace is not None:
            best = hit["best"]
            origin = find_origin(database, workspace, hit["path"], best["start_line"], best["end_line"])
            if origin is not None:
                hit["origin"] = origin
