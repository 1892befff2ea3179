"""The estimate of tokens against the default model's own tokenizer, over the example memory."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pytest

from memoryd.jobs.chunking import split_passages
from memoryd.jobs.embedders.llama import LlamaEmbedder
from memoryd.jobs.tokens import estimate_tokens

WORKSPACE = Path(__file__).parents[2] / "examples" / "workspace"
HANGUL = re.compile("[가-힣]")
HAN_OR_KANA = re.compile("[一-鿿぀-ヿ]")
CONTEXT = 512


@pytest.fixture(scope="module")
def embedder(default_model: Path) -> LlamaEmbedder:
    return LlamaEmbedder(default_model)


def texts(script: str) -> list[str]:
    def script_of(text: str) -> str:
        if len(HANGUL.findall(text)) > 50:
            return "korean"
        return "chinese or japanese" if len(HAN_OR_KANA.findall(text)) > 50 else "english"

    notes = (path.read_text(encoding="utf-8") for path in sorted(WORKSPACE.rglob("*.md")))
    return [text for text in notes if script_of(text) == script]


@pytest.mark.parametrize(
    ("script", "documents", "mean_error", "worst_error"),
    [
        ("english", 15, 0.05, 0.10),
        ("chinese or japanese", 4, 0.03, 0.06),
        ("korean", 2, 0.06, 0.09),
    ],
)
def test_estimate_is_close_to_the_tokenizer(
    embedder: LlamaEmbedder, script: str, documents: int, mean_error: float, worst_error: float
) -> None:
    pairs = [(estimate_tokens(text), embedder.count_tokens(text)) for text in texts(script)]
    errors = [abs(estimated - counted) / counted for estimated, counted in pairs]
    assert len(errors) >= documents
    assert mean(errors) <= mean_error
    assert max(errors) <= worst_error


@pytest.mark.parametrize("script", ["english", "chinese or japanese", "korean"])
def test_every_passage_fits_the_context_of_the_model(embedder: LlamaEmbedder, script: str) -> None:
    for text in texts(script):
        assert all(embedder.count_tokens(passage.text) < CONTEXT for passage in split_passages(text))
