"""Modules that a library imports and we never call: empty ones take their place, for the time and memory they cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


@contextmanager
def left_out(prefix: str) -> Iterator[None]:
    """What is imported meanwhile finds empty modules where a name begins like this. What is loaded already stays."""
    finder = _Finder(prefix)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder, Loader):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.startswith(self._prefix) else None

    def create_module(self, _spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__getattr__"] = _empty_class


def _empty_class(name: str) -> type:
    """For ``from module import Name``."""
    if name.startswith("_"):
        raise AttributeError(name)
    return type(name, (), {})
