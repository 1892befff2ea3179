"""A query against many rows at once, in a few bits a number: the only module that imports simsimd.

Its products of int8 are exact integers on every CPU, so equal rows are equally near wherever they stand.
"""

from __future__ import annotations

import numpy as np
import simsimd
from numpy.typing import NDArray

from memoryd.store.precision import Small

Bits = NDArray[np.uint8]


def products(query: Small, rows: Small) -> NDArray[np.float32]:
    """The product of the query with each row."""
    if not len(rows):
        return np.empty(0, np.float32)
    return np.asarray(simsimd.cdist(query[None], rows, "dot", dtype="int8", out_dtype="f32"), np.float32).ravel()


def differing_bits(query: Bits, rows: Bits) -> NDArray[np.uint16]:
    """In how many bits each row differs from the query."""
    if not len(rows):
        return np.empty(0, np.uint16)
    found = simsimd.cdist(query[None], rows, "hamming", dtype="bin8", out_dtype="f32")
    return np.asarray(found).ravel().astype(np.uint16)
