"""Which languages a text is in, and the model that is advised for them."""

from __future__ import annotations

import pytest

from memoryd.jobs.language import LARGELY, advise_model, cjk_share
from memoryd.jobs.models.catalogue import CATALOGUE, resolve


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        ([], 0),
        (["", "2026-11-15 — 12:03!"], 0),
        (["plain English", "Füße, çava, привет"], 0),
        (["胶圈"], 1),
        (["ひらがなカタカナ漢字", "한국어"], 1),
        (["胶圈 ab"], 0.5),
        (["胶圈", "ab"], 0.5),
    ],
)
def test_the_share_is_of_letters(texts: list[str], share: float) -> None:
    assert cjk_share(texts) == share


def test_advice_is_for_largely_cjk_notes_and_an_english_model_alone() -> None:
    advice = advise_model(LARGELY, "all-minilm-l6-v2")
    assert advice
    named = [model for model in CATALOGUE if model.name in advice.remedy]
    assert named
    assert all(model.languages != "English" for model in named)
    assert advise_model(LARGELY - 0.01, "all-minilm-l6-v2") is None
    for spec in ("bge-m3", "/some/file.gguf", "hf:org/repo/file.gguf", "no-such-model"):
        assert advise_model(1.0, spec) is None


def test_what_is_advised_can_be_used() -> None:
    advice = advise_model(1.0, "all-minilm-l6-v2")
    assert advice
    assert resolve(advice.remedy.split()[3])
