"""Which languages the notes are in, and whether the model can read them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memoryd.jobs.models.catalogue import CATALOGUE, Model, resolve
from memoryd.store.database import Database
from memoryd.store.errors import ConfigInvalid

# By characters: an ideograph says about as much as three Latin letters, so a fifth is nearly half of what is said.
LARGELY = 0.2
_SAMPLE = 100  # passages: status is asked often, and looks at these each time
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_NO_LETTERS = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, slots=True)
class Advice:
    message: str
    remedy: str


def cjk_share(texts: Iterable[str]) -> float:
    """The share of letters that are Chinese, Japanese or Korean; 0 where there are none."""
    letters = cjk = 0
    for text in texts:
        letters += len(_NO_LETTERS.sub("", text))
        cjk += 0 if text.isascii() else len(_CJK.findall(text))
    return cjk / letters if letters else 0.0


def advise_model(share: float, spec: str) -> Advice | None:
    """What to do where the notes are largely CJK and the model reads English alone; None: nothing, or unknown."""
    try:
        model = resolve(spec)
    except ConfigInvalid:
        return None
    if share < LARGELY or not isinstance(model, Model) or model.languages != "English":
        return None
    first, *others = [other.name for other in CATALOGUE if other.languages != "English"]
    return Advice(
        f"About {share:.0%} of the letters in the notes are Chinese, Japanese or Korean, and {model.name} reads "
        "English: those notes are found by their words alone",
        f"memoryd model use {first} (or {', '.join(others)}), then restart memoryd",
    )


def language_notes(database: Database, spec: str) -> list[str]:
    """The advice for what is indexed. Passages are drawn by their ids, which are hashes: a few stand for all."""
    with database.read() as sql:
        texts = [text for (text,) in sql.execute("SELECT text FROM passages ORDER BY id LIMIT ?", (_SAMPLE,))]
    advice = advise_model(cjk_share(texts), spec)
    return [f"{advice.message} → {advice.remedy}"] if advice else []
