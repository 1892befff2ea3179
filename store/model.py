"""The words of memoryd as values: frozen, typed, free of behaviour that needs I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from typing import Any

from memoryd.store.scope import GLOBAL

FACTS = "facts"  # the source of what ingest has made, and the workspace of memoryd's own that it is kept in


@dataclass(frozen=True, slots=True)
class Passage:
    """A few sentences of a document: the unit that is embedded. A document's passages, joined, are its text."""

    ordinal: int  # place among the document's passages, from 0
    text: str  # exactly the characters of the document, line ends included
    heading: str  # breadcrumb of the headings above it, joined by " > "; "" before the first heading
    start_line: int  # 1-based
    end_line: int  # inclusive
    tokens: int  # estimated


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of passages of about 400 tokens: the unit that is keyword-indexed, returned and cited."""

    ordinal: int  # place among the document's chunks, from 0
    first_passage: int  # ordinal of its first passage; passages shared with the chunk before are the overlap
    last_passage: int  # inclusive
    heading: str  # breadcrumb where the chunk's own text (after the overlap) starts
    start_line: int  # 1-based
    end_line: int  # inclusive
    tokens: int  # estimated


@dataclass(frozen=True, slots=True)
class Superseding:
    """A statement of a document's front matter: of it and another one, which is out of date."""

    is_newer: bool  # True: it supersedes the other one; False: it is superseded by it
    places: tuple[str, ...]  # paths at which the other one may be, the likeliest first


@dataclass(frozen=True, slots=True)
class Document:
    """One markdown file, read and split; what the ledger stores in one transaction."""

    workspace: str
    path: str  # relative to the workspace, with "/"
    source: str  # "memory", "skills", ...
    signature: str  # the file's stat when it was read: if it differs, look again
    content_hash: str  # of the bytes on disk
    size: int  # bytes on disk
    date: date | None  # from front matter or the path, never from mtime
    evergreen: bool  # never decays; True for every undated document
    title: str
    front_matter: Mapping[str, Any]  # plain JSON values
    notices: tuple[str, ...]  # what was wrong with the file and how it was read all the same
    passages: tuple[Passage, ...]
    chunks: tuple[Chunk, ...]
    scope: str = GLOBAL  # who it is for
    superseding: tuple[Superseding, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What makes two vectors comparable."""

    model: str  # name as configured and shown
    fingerprint: str  # of model file, pooling, prompts: another fingerprint, another generation
    dimension: int


@dataclass(frozen=True, slots=True)
class Job:
    """One unit of work in the queue."""

    key: str  # what it is about: "index:<workspace>:<path>"; the same key coalesces
    kind: str  # "index", "embed", "reconcile", "maintain"
    workspace: str  # "" where the job is about no workspace
    path: str  # "" where the job is about no document
    attempts: int  # failed tries so far
    enqueued_at: float  # unix time of the first request since the job last ended


TEXT_VERSION = "1"  # of embedding_text(): part of the fingerprint


def embedding_text(passage: Passage) -> str:
    """What the embedder is given for a passage; empty where there is nothing to embed."""
    text = passage.text.strip()
    return text if any(character.isalnum() for character in text) else ""


def embedding_hash(text: str) -> bytes:
    """The key of what is embedded, in the ledger and in the cache."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def stable_id(*parts: object) -> int:
    """A 63-bit id that depends on nothing but the parts, so that two indexes of the same files agree."""
    digest = blake2b("\0".join(map(str, parts)).encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def document_id(workspace: str, path: str) -> int:
    return stable_id("document", workspace, path)


SESSIONS = "sessions"  # the source of what was said in sessions


def segment_path(transcript: str, ordinal: int) -> str:
    """Where a segment of a transcript is a document: below the file, where no other file can be."""
    return f"{transcript}/{ordinal}"
