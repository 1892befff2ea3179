"""docs/reliability.md names the test that proves each promise; each of them is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reliability.md"


def existing_tests() -> set[str]:
    found: set[str] = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found


def promise_rows() -> list[list[str]]:
    rows = [line.strip("|").split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    return [row for row in rows if not set("".join(row)) <= set("- ") and "proven by" not in row[-1]]


def test_every_promise_names_a_test_that_exists() -> None:
    existing = existing_tests()
    for row in promise_rows():
        named = re.findall(r"`(test_\w+)`", row[-1])
        assert named, f"nothing proves: {row[0].strip()}"
        assert set(named) <= existing, f"no such test: {set(named) - existing}"


def test_the_page_makes_promises() -> None:
    assert len(promise_rows()) > 25
