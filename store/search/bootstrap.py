"""How far a mean over queries can be trusted: the bootstrap. Pure, and the same for the same numbers.

Queries are drawn again and again, with replacement, from those that were asked; how much the mean varies between
the draws is how much it would vary between sets of queries like this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Verdict = Literal["better", "worse", "no difference that can be told"]

RESAMPLES = 10_000
# Five queries that all change the same way do so by chance once in 16 times; six, once in 32. With fewer the
# bootstrap sees no variation and would be certain of nothing but luck.
FEWEST_CHANGED = 6
_SEED = 20_261_115
_BLOCK = 500  # resamples at a time, so that thousands of queries need no gigabytes


def mean_intervals(table: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The 95 % interval of the mean of each column; a row is a query. One row (low, high) a column.

    All columns are drawn together: queries that were lucky in one measure are in the others, too.
    """
    values = np.asarray(table, dtype=np.float64)
    queries, columns = values.shape
    if not queries:
        return np.zeros((columns, 2))
    random = np.random.default_rng(_SEED)
    means = np.empty((RESAMPLES, columns))
    for start in range(0, RESAMPLES, _BLOCK):
        drawn = random.multinomial(queries, np.full(queries, 1 / queries), size=_BLOCK)  # how often each query
        means[start : start + _BLOCK] = drawn @ values / queries
    return np.percentile(means, (2.5, 97.5), axis=0).T


def judge(differences: Sequence[float], low: float, high: float) -> Verdict:
    """What the interval of the mean difference says: better or worse only where it leaves no doubt about the sign."""
    if np.count_nonzero(differences) < FEWEST_CHANGED or low <= 0 <= high:
        return "no difference that can be told"
    return "better" if low > 0 else "worse"
