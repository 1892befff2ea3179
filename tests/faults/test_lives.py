"""The commit boundaries that ordinary days do not reach: damage, another day, another model, a table written anew.

Each victim comes back from the one before, is compared with a fresh index, and is killed at the next point. Its
embedder is the fake one, so that a life takes a second; SQLite, LanceDB and the kill are real.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memoryd.store.errors import StoreFull, StoreUnavailable
from memoryd.store.failpoints import POINTS, arm
from tests.support.victim import come_back, live, live_until_killed

OF_A_LIFE = (
    "ledger.refold",
    "ledger.reclaim",
    "queue.enqueue",
    "queue.requeue",
    "queue.return",
    "cache.create",
    "cache.note",
    "cache.pack",
    "cache.shrink",
    "cache.forget",
    "vectors.rewrite",
    "vectors.convert",
    "vectors.drop",
    "generation.register",
    "generation.retire",
    "generation.forget",
    "quarantine",
)
# The ledger has committed: only a crash can come there, for nothing is asked of SQLite any more.
AFTER_A_COMMIT = [name for name in POINTS if name.startswith(("queue.", "generation.")) and name.endswith(".after")]
COMMITS = range(4, 60, 7)  # of the ledger in one life, whatever they are of


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm("")


def kill_one_after_the_other(tmp_path: Path, points: list[str]) -> None:
    fresh, folder = tmp_path / "fresh", tmp_path / "victim"
    fresh.mkdir()
    root = come_back(fresh)
    folder.mkdir()
    for point in points:
        ended = live_until_killed(folder, point, root)
        assert ended == -9, f"{point}: {(folder / 'log').read_text()[-5000:]}"
    assert come_back(folder) == root


@pytest.mark.timeout(300)  # a process for each boundary
@pytest.mark.parametrize("room", ["ledger", "queue", "cache", "vectors", "generation", "quarantine"])
def test_life_killed_at_a_boundary_that_is_rarely_reached_is_taken_up_by_the_next(room: str, tmp_path: Path) -> None:
    points = [name for name in POINTS if name.startswith(OF_A_LIFE) and name.startswith(room)]
    assert points
    kill_one_after_the_other(tmp_path, [f"{point}=kill" for point in points])


@pytest.mark.timeout(300)
def test_life_killed_at_any_commit_of_the_ledger_is_taken_up_by_the_next(tmp_path: Path) -> None:
    kill_one_after_the_other(tmp_path, [f"ledger.commit.before=kill@{commit}" for commit in COMMITS])


@pytest.mark.parametrize(("third", "action"), [(0, "error"), (1, "full"), (2, "error")])
def test_life_in_which_such_boundaries_fail_once_loses_nothing(tmp_path: Path, third: int, action: str) -> None:
    """Where it was a start that failed, the next one succeeds; what else failed is tried again by itself."""
    points = [name for name in POINTS if name.startswith(OF_A_LIFE) and name not in AFTER_A_COMMIT][third::3]
    root = come_back(tmp_path)
    arm(",".join(f"{point}={action}@1-1" for point in points))
    for _ in points:
        with suppress(StoreFull, StoreUnavailable):  # whatever else is raised is a fault of ours
            live(tmp_path)
            break
    else:
        pytest.fail("a life goes on after each of them has failed once")
    arm("")
    assert come_back(tmp_path) == root


def test_switch_that_fails_at_its_flip_is_finished_all_the_same(tmp_path: Path) -> None:
    """The second time is the other model's; the one before is searched until it has succeeded."""
    root = come_back(tmp_path)
    arm("generation.serve.before=error@2-2")
    live(tmp_path)
    arm("")
    assert come_back(tmp_path) == root
