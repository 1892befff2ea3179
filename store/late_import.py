"""Importing a package that another one insists on, but not before something of it is used."""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec, module_from_spec

_lock = threading.Lock()


def import_when_used(name: str) -> None:
    """From here on ``name`` can be imported, and so can its submodules; its own code runs when it is asked for a name.

    Without effect where it was imported already, or is not there: whoever wants it finds out as ever.
    """
    with _lock:
        spec = None if name in sys.modules else find_spec(name)
        if spec is None or spec.loader is None:
            return
        module, loader = module_from_spec(spec), spec.loader

        def load(attribute: str) -> object:
            with _lock:
                if module.__dict__.pop("__getattr__", None) is not None:
                    loader.exec_module(module)
            return getattr(module, attribute)

        module.__dict__["__getattr__"] = load
        sys.modules[name] = module
