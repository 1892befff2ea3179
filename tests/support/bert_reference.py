"""A BERT sentence encoder in float32 numpy, straight from the published weights: what "correct" means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float32]


class BertReference:
    """Forward pass, mean pooling, length 1."""

    def __init__(self, weights: Path, *, heads: int = 12) -> None:
        self._weights: dict[str, Array] = load_file(weights)
        self._heads = heads
        self._layers = sum(name.endswith("attention.self.query.weight") for name in self._weights)

    def embed(self, ids: Sequence[int]) -> Array:
        words = self._weights["embeddings.word_embeddings.weight"][list(ids)]
        positions = self._weights["embeddings.position_embeddings.weight"][: len(ids)]
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._norm(words + positions + kind, "embeddings.LayerNorm")
        for layer in range(self._layers):
            hidden = self._layer(hidden, f"encoder.layer.{layer}")
        pooled: Array = hidden.mean(axis=0)
        return pooled / np.linalg.norm(pooled)

    def _layer(self, hidden: Array, name: str) -> Array:
        attended = self._linear(self._attend(hidden, f"{name}.attention.self"), f"{name}.attention.output.dense")
        hidden = self._norm(hidden + attended, f"{name}.attention.output.LayerNorm")
        grown = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        return self._norm(hidden + self._linear(grown, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _attend(self, hidden: Array, name: str) -> Array:
        length, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}.{part}").reshape(length, self._heads, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / math.sqrt(width // self._heads)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ value).swapaxes(0, 1).reshape(length, width)

    def _linear(self, values: Array, name: str) -> Array:
        return values @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, values: Array, name: str) -> Array:
        centred = values - values.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(values: Array) -> Array:
    return 0.5 * values * (1 + _erf(values / np.float32(math.sqrt(2))))


def _erf(values: Array) -> Array:
    """Abramowitz and Stegun 7.1.26: to 2e-7, and numpy has none of its own."""
    size = np.abs(values)
    t = 1 / (1 + 0.3275911 * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    error: Array = np.sign(values) * (1 - series * np.exp(-size * size))
    return error
