"""What stands in a turn and is not speech: the harness' own blocks, encoded files, terminal codes, endless output."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memoryd.jobs.sessions.secrets import mask_secrets

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DATA_URL = re.compile(r"data:[\w.+/-]{1,100};base64,[A-Za-z0-9+/=_-]+")
_ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{200,}")  # no word, path or hash is so long without a break
_WRAPPED = re.compile(r"(?:^[ \t]*[A-Za-z0-9+/]{60,}={0,2}[ \t]*\n?){4,}", re.MULTILINE)  # as base64(1) prints it
_OMITTED = "[encoded data omitted]"


def clean_text(text: str, most: int) -> str:
    """A turn's text as it is kept: no secret, nothing that is not text, at most so many characters of it."""
    text = text.encode(errors="replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    text = mask_secrets(text)  # before anything is cut: half a key would not look like one
    text = _DATA_URL.sub(_OMITTED, text)
    text = _WRAPPED.sub(f"{_OMITTED}\n", text)
    text = _ENCODED.sub(_OMITTED, text).strip()
    if len(text) > most:
        text = f"{text[:most].rstrip()}\n[{len(text) - most:,} characters more]"
    return text


def strip_blocks(text: str, tags: Iterable[str]) -> str:
    """The text without what stands between these tags and their ends; a tag that does not end stays."""
    for tag in tags:
        begin, end = f"<{tag}>", f"</{tag}>"
        kept: list[str] = []
        at = 0
        while (first := text.find(begin, at)) >= 0 and (last := text.find(end, first)) >= 0:
            kept.append(text[at:first])
            at = last + len(end)
        if at:
            text = "".join([*kept, text[at:]])
    return text
