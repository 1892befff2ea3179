"""A query against many rows at once, 8 bits a number: the only module that imports simsimd.

Its products of int8 are exact integers on every CPU, so equal rows are equally near wherever they stand.
"""

from __future__ import annotations

import numpy as np
import simsimd
from numpy.typing import NDArray

from memoryd.store.precision import Small


def products(query: Small, rows: Small) -> NDArray[np.float32]:
    """The product of the query with each row. Other threads run meanwhile."""
    # One thread: waking a second one takes longer than it saves, wherever it is woken.
    found = simsimd.cdist(query[None], rows, "dot", dtype="int8", out_dtype="f32", threads=1)
    return np.asarray(found, np.float32).ravel()
