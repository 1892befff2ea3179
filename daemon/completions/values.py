"""What a value is completed with, told by what the command line calls it."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.daemon.commands.outline import Argument, Option
from memoryd.daemon.live_settings import SEARCH_SETTINGS
from memoryd.jobs.embedders.providers import PROVIDERS
from memoryd.jobs.models.catalogue import CATALOGUE
from memoryd.jobs.models.rerankers import RERANKERS


@dataclass(frozen=True, slots=True)
class Values:
    words: tuple[str, ...] = ()
    files: bool = False
    folders: bool = False
    open_ended: bool = False  # a word is the beginning of a value: no space follows


_NOTHING = Values()
_MODELS = tuple(model.name for model in CATALOGUE)
_EMBEDDERS = Values(words=(*_MODELS, *PROVIDERS, "none"), files=True)
_BY_NAME = {
    "DIR": Values(folders=True),
    "FILE": Values(files=True),
    "A.toml B.toml": Values(files=True),
    "PATH": Values(files=True),
    "GLOB": Values(files=True),
    "MODEL": Values(words=(*_MODELS, *(model.name for model in RERANKERS)), files=True),
    "MODEL|SERVICE": _EMBEDDERS,
    "BESIDE": _EMBEDDERS,
    "S": Values(words=("memory", "skills", "facts", "sessions")),
    "KEY": Values(words=tuple(SEARCH_SETTINGS)),
    "KEY=VALUE": Values(words=tuple(f"{key}=" for key in SEARCH_SETTINGS), open_ended=True),
}


def values_of(taken: Option | Argument) -> Values:
    if taken.choices:
        return Values(words=taken.choices)
    name = "PATH" if taken.value.startswith("PATH") else taken.value  # PATH:LINE, PATH[#LFROM[-LTO]]
    return _BY_NAME.get(name, _NOTHING)
