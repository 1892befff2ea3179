"""A query against many rows at once, 8 bits a number: the only module that imports simsimd.

Its products of int8 are exact integers on every CPU, so equal rows are equally near wherever they stand.
"""

from __future__ import annotations

import numpy as np
import simsimd
from numpy.typing import NDArray

from memoryd.store.precision import Small

_PORTION_BYTES = 4_000_000  # at a time: while simsimd compares, no other thread of this process runs Python


def products(query: Small, rows: Small) -> NDArray[np.float32]:
    """The product of the query with each row."""
    found = np.empty(len(rows), np.float32)
    portion = max(1, _PORTION_BYTES // max(1, rows.shape[1]))
    for start in range(0, len(rows), portion):
        part = rows[start : start + portion]
        found[start : start + portion] = np.asarray(
            simsimd.cdist(query[None], part, "dot", dtype="int8", out_dtype="f32"), np.float32
        ).ravel()
    return found
