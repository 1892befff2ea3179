"""What the legs make of queries that nothing answers: how well they tell sense from nonsense in this memory.

Measured by asking for words drawn at random from the memory itself (``calibration``). A leg whose best hit for such
nonsense looks nearly perfect knows little: the vectors of a model that cannot read a script, the words of a memory
that says the same everywhere. It is a property of the model, the memory and the script, so it is kept for each.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from memoryd.store.folding import UNSPACED

Script = Literal["spaced", "unspaced"]
SCRIPTS: tuple[Script, ...] = ("spaced", "unspaced")

_LETTERS = re.compile(r"[^\W\d_]")
_UNSPACED_LETTERS = re.compile(rf"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Noise:
    """Without a measurement every leg is taken at its word."""

    shares: Mapping[str, float] = field(default_factory=dict)  # leg -> share of its best hit, on average
    floor: float = 0.0  # cosine of things that have nothing to do with each other

    def of(self, leg: str) -> float:
        return self.shares.get(leg, 0.0)


def script_of(text: str) -> Script:
    """Whether most of a text's letters are of scripts written without spaces between words."""
    letters = len(_LETTERS.findall(text))
    return "unspaced" if 2 * len(_UNSPACED_LETTERS.findall(text)) > letters else "spaced"


def read_noise(sql: sqlite3.Connection, script: Script) -> Noise:
    """As it was measured last for the active generation; for a script with too few notes, as for the other."""
    row = sql.execute(
        "SELECT value FROM meta WHERE key = 'noise:' || ifnull((SELECT fingerprint FROM generations WHERE active), '')"
    ).fetchone()
    measured = json.loads(row[0])["scripts"] if row else {}
    found = measured.get(script) or next(iter(measured.values()), None)
    return Noise(**found) if found else Noise()


def noise_record(scripts: Mapping[Script, Noise], chunks: int) -> str:
    """What is kept in the ledger; ``chunks`` tells later whether the memory has changed much since."""
    return json.dumps({"chunks": chunks, "scripts": {script: asdict(noise) for script, noise in scripts.items()}})
