"""A machine of its own for each test, with the model that is already there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Machine, make_machine


@pytest.fixture
def machine(tmp_path: Path, default_model: Path, models_dir: Path) -> Iterator[Machine]:
    with make_machine(tmp_path, models_dir) as machine:
        yield machine
