"""What the legs make of queries that nothing answers: how well they tell sense from nonsense in this memory.

Measured by asking for words drawn at random from the memory itself (``calibration``). A leg whose best hit for such
nonsense looks nearly perfect knows little: the vectors of a model that cannot read a script, the words of a memory
that says the same everywhere. It is a property of the model, the memory and the script, so it is kept for each.
"""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

_ONE_SCRIPT = {"cjk", "hiragana", "katakana", "katakana-hiragana", "ideographic"}  # Japanese is written in all of them
HAN = "han"
LATIN = "latin"
PASSAGE = "passage"
NOISE_VERSION = 10  # raise it when noise is measured differently


@dataclass(frozen=True, slots=True)
class Noise:
    """Without a measurement every leg is taken at its word."""

    # Leg -> share of its best hit, on average; and under PASSAGE the share of the best single passage.
    shares: Mapping[str, float] = field(default_factory=dict)
    floor: float = 0.0  # cosine of things that have nothing to do with each other
    part: float = 1.0  # of the memory that is written in the script
    spread: float = 1.0  # how far apart the model puts what is unrelated, beside how far it can; small: it reads little
    chunks: int = 0  # of the memory, in all scripts; none: nothing is known of it

    def of(self, leg: str) -> float:
        return self.shares.get(leg, 0.0)


def script_of(text: str) -> str:
    """The script that most letters of a text are of, by its name in Unicode; empty where there is no letter."""
    if text.isascii():
        return LATIN if any(map(str.isalpha, text)) else ""
    scripts = count_letters(text)
    return scripts.most_common(1)[0][0] if scripts else ""


def count_letters(text: str) -> Counter[str]:
    """The letters of a text by script."""
    if text.isascii():
        return Counter({LATIN: letters} if (letters := sum(map(str.isalpha, text))) else {})
    return Counter(_script(character) for character in text if character.isalpha())


@lru_cache(maxsize=65_536)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "unknown").lower().removeprefix("halfwidth ").removeprefix("fullwidth ")
    script = name.split()[0]
    return HAN if script in _ONE_SCRIPT or script.startswith("cjk") else script


def read_noise(sql: sqlite3.Connection, script: str, fingerprint: str | None = None) -> Noise:
    """As it was measured last for a generation (None: the active one).

    For a script with too few notes the legs are as for the commonest, and how far apart the model puts things is what
    it makes of any text in that script. Of one without a note nothing but the commonest is known.
    """
    record = read_record(sql, fingerprint)
    if not record:
        return Noise()
    measured, chunks = record["scripts"], record["chunks"]
    if script in measured:
        return Noise(**measured[script], chunks=chunks)
    other = next(iter(measured.values()), None) or {"shares": {}, "floor": 0.0, "spread": 1.0}
    floor, spread = other["floor"], other["spread"]
    if script in record["chances"]:
        floor = record["chances"][script]
        spread = min(1.0, (1 - floor) / (1 - record["usual"]))
    return Noise(other["shares"], floor, spread=spread, chunks=chunks)


def read_record(sql: sqlite3.Connection, fingerprint: str | None = None) -> dict[str, Any]:
    """What was measured last for a generation (None: the active one), in the same way as today; else nothing."""
    if fingerprint is None:
        row = sql.execute("SELECT fingerprint FROM generations WHERE active").fetchone()
        fingerprint = row[0] if row else ""
    row = sql.execute("SELECT value FROM meta WHERE key = ?", (noise_key(fingerprint),)).fetchone()
    record: dict[str, Any] = json.loads(row[0]) if row else {}
    return record if record.get("version") == NOISE_VERSION else {}


def noise_key(fingerprint: str) -> str:
    """Where the ledger has it."""
    return f"noise:{fingerprint}"


def noise_record(
    scripts: Mapping[str, Noise], chunks: int, usual: float = 0.0, chances: Mapping[str, float] | None = None
) -> str:
    """What is kept in the ledger; ``chunks`` tells later whether the memory has changed much since.

    It is of all scripts and stands beside them: an older memoryd takes what it finds in one for what it knows.
    ``usual``: the cosine of what is unrelated, in a script that every model reads; ``chances``: of a question and a
    passage that are, in the others that the memory has notes in.
    """
    measured = {script: asdict(noise) for script, noise in scripts.items()}
    for each in measured.values():
        del each["chunks"]
    record = {"version": NOISE_VERSION, "chunks": chunks, "scripts": measured}
    return json.dumps({**record, "usual": usual, "chances": dict(chances or {})})
