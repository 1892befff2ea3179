"""A query against many rows at once, 8 bits a number: the only module that imports simsimd.

Its products of int8 are exact integers on every CPU, so equal rows are equally near wherever they stand.
"""

from __future__ import annotations

import os

import numpy as np
import simsimd
from numpy.typing import NDArray

from memoryd.store.precision import Small

_MANY = 4 * 2**20  # numbers, from which a second core is worth waking: 10,000 rows of a small model
_THREADS = min(2, len(os.sched_getaffinity(0)))


def products(query: Small, rows: Small) -> NDArray[np.float32]:
    """The product of the query with each row. Other threads run meanwhile."""
    threads = _THREADS if rows.size >= _MANY else 1
    found = simsimd.cdist(query[None], rows, "dot", dtype="int8", out_dtype="f32", threads=threads)
    return np.asarray(found, np.float32).ravel()
