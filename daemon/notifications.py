"""What each notification says, as types: ``<Name>Event`` belongs to ``events.<name>``."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from memoryd.daemon.results import BriefStatus, Health


class Told(TypedDict):
    seq: Annotated[int, "Counts every event of the daemon: a gap is what was not subscribed to, or dropped."]
    at: Annotated[str, "When, in UTC."]


class DocumentEvent(Told):
    """A document is searchable by its words (indexed), by its meaning too (embedded), passed over, or gone."""

    change: Literal["indexed", "embedded", "skipped", "forgotten"]
    workspace: str
    path: str


class ProgressEvent(BriefStatus, Told):
    """How far indexing is: once after subscribing, and when it changes."""


class HealthEvent(Health, Told):
    """How healthy the daemon is: once after subscribing, and when it changes."""


class DroppedEvent(TypedDict):
    """The client did not keep up: so many events before the next one are lost."""

    count: int
