"""The daemon killed without warning, again and again: what is left is a sound index and no lost work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemon import Machine
from tests.support.soundness import OFTEN, check_layout, check_like_fresh, check_sound, tidy
from tests.support.storm import Storm

KILLS = 5  # a schedule; `make soak` is the long form
FILES = 12


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_index_after_kills_at_random_moments_equals_a_fresh_one(machine: Machine, tmp_path: Path, seed: int) -> None:
    storm = Storm(machine, seed)
    storm.begin(FILES)
    for _ in range(KILLS):
        storm.run_and_kill()
    assert storm.kills == KILLS
    machine.env = OFTEN
    with machine.daemon() as daemon:
        proof = check_sound(daemon)
        assert proof["documents"] == len(storm.notes())
        tidy(daemon)
    check_layout(machine)
    check_like_fresh(machine, tmp_path / "fresh", proof)
