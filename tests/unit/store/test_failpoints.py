"""The places where memoryd can be made to fail: named, all of them real, and silent unless asked for."""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.store.errors import ConfigInvalid
from memoryd.store.failpoints import POINTS, arm, failpoint

ROOT = Path(__file__).parents[3]
ROOMS = ("daemon", "jobs", "store")


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm("")


def called_points() -> list[str]:
    """The names with which ``failpoint`` is called in the program."""
    found: list[str] = []
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "failpoint":
                    (argument,) = node.args
                    assert isinstance(argument, ast.Constant), f"{file.name}: a fail point's name is written out"
                    found.append(argument.value)
    return found


def test_every_point_is_called_once_and_every_call_is_registered() -> None:
    assert sorted(called_points()) == sorted(POINTS)


def test_unarmed_point_does_nothing() -> None:
    for name in POINTS:
        failpoint(name)


def test_only_the_armed_point_fails() -> None:
    arm("ledger.commit.before=error")
    failpoint("ledger.commit.after")
    with pytest.raises(sqlite3.OperationalError):
        failpoint("ledger.commit.before")


def test_point_fails_from_the_nth_time_or_for_some_times() -> None:
    arm("queue.claim.after=bug@3, queue.settle.before=bug@1-2")
    failpoint("queue.claim.after")
    failpoint("queue.claim.after")
    for _ in range(2):
        with pytest.raises(RuntimeError):
            failpoint("queue.claim.after")
        with pytest.raises(RuntimeError):
            failpoint("queue.settle.before")
    failpoint("queue.settle.before")


def test_point_can_wait_for_a_file(tmp_path: Path) -> None:
    arm(f"queue.claim.after=bug@2?{tmp_path / 'go'}")
    for _ in range(3):
        failpoint("queue.claim.after")
    (tmp_path / "go").touch()
    failpoint("queue.claim.after")
    with pytest.raises(RuntimeError):
        failpoint("queue.claim.after")


@pytest.mark.parametrize(
    ("point", "kind"),
    [
        ("ledger.commit.before", sqlite3.Error),
        ("vectors.upsert.after", RuntimeError),
        ("model.download.renamed", OSError),
    ],
)
@pytest.mark.parametrize("action", ["error", "full"])
def test_error_is_of_the_kind_that_the_boundary_raises(point: str, kind: type[Exception], action: str) -> None:
    arm(f"{point}={action}")
    with pytest.raises(kind):
        failpoint(point)


@pytest.mark.parametrize("text", ["ledger.comit.before=kill", "ledger.commit.before=explode", "ledger.commit.before"])
def test_what_names_no_point_or_no_action_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="names no fail point"):
        arm(text)
