"""Cutting a transcript into segments, line by line: a segment is full when it is, whatever comes after it.

So a file that was read as it grew is cut as one that is read in one go, and what is full never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from hashlib import blake2b
from pathlib import PurePosixPath

from memoryd.jobs.sessions.formats import read_line
from memoryd.jobs.sessions.noise import clean_text
from memoryd.jobs.sessions.rendering import render_turn
from memoryd.jobs.sessions.rules import SegmentRules
from memoryd.jobs.sessions.tail import RawLine
from memoryd.jobs.sessions.turn import UNKNOWN

SEGMENTS_VERSION = "1"  # of how transcripts are read and cut: another one, and all are read again


@dataclass(slots=True)
class Segment:
    """A run of whole lines; its text is a document."""

    ordinal: int  # from 1
    start: int  # byte offset in the file
    first_line: int  # of the file, from 1
    end: int = 0
    lines: int = 0
    turns: int = 0
    dropped: int = 0  # lines without a turn: tools, settings
    unknown: int = 0  # lines that are none of the format
    hash: str = ""  # of its lines, chained: it grows as they do
    text: str = ""
    places: list[list[int]] = field(
        default_factory=list
    )  # of each turn: its first line in the text, its line in the file
    date: date | None = None  # of its last turn that has one

    def __post_init__(self) -> None:
        self.end = max(self.end, self.start)

    def is_full(self, rules: SegmentRules) -> bool:
        return self.turns >= rules.turns or len(self.text) >= rules.chars or self.end - self.start >= rules.bytes


class Segmenter:
    """Takes lines in order; knows the format and the session as soon as the lines tell them."""

    def __init__(
        self, path: str, rules: SegmentRules, current: Segment | None = None, chosen: str = "", session: str = ""
    ) -> None:
        self._path = path
        self._rules = rules
        self.current = current or Segment(1, 0, 1)
        self.format = chosen
        self.session = session  # the first id that a line names before anybody speaks, else the file's name
        self.anchor = ""

    def take(self, raw: RawLine) -> Segment | None:
        """The segment that this line fills, if it does; the next one is begun then."""
        line, self.format = (UNKNOWN, self.format) if raw.data is None else read_line(raw.data, self.format)
        self.session = self.session or line.session
        now = self.current
        text = clean_text(line.turn.text, self._rules.max_turn_chars) if line.turn else ""
        if line.turn and text:
            now.places.append([now.text.count("\n") + 1, now.first_line + now.lines])
            now.text += render_turn(line.turn, text)
            now.turns += 1
            now.date = line.turn.at.date() if line.turn.at else now.date
            self.session = self.session or PurePosixPath(self._path).stem
        elif line.known:
            now.dropped += 1
        else:
            now.unknown += 1
        now.lines += 1
        now.end += raw.length
        now.hash = blake2b(bytes.fromhex(now.hash) + raw.digest, digest_size=16).hexdigest()
        self.anchor = raw.anchor
        if not now.is_full(self._rules):
            return None
        self.current = Segment(now.ordinal + 1, now.end, now.first_line + now.lines)
        return now
