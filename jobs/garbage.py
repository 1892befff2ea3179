"""How seldom Python looks for garbage in cycles: a look at everything takes 60 ms, in the middle of some query.

What a search makes is freed when it is answered; next to nothing of it is in a cycle.
"""

from __future__ import annotations

import gc
from typing import Final

_THRESHOLDS: Final = (10_000, 20, 20)  # objects that are new; looks at those before a look at the next older ones


def look_seldom() -> None:
    gc.set_threshold(*_THRESHOLDS)


def clear_up() -> None:
    """For a quiet moment: look at everything once. What is left stays, and is not looked at before the next one."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
