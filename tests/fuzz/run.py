#!/usr/bin/env python
"""Atheris over the harness: ``make fuzz``. Arguments are libFuzzer's."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["memoryd", "json"]):
    from tests.fuzz.harness import exercise

if __name__ == "__main__":
    atheris.Setup(sys.argv, exercise)
    atheris.Fuzz()
