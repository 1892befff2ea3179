"""Modules that are left out of an import, and how Arrow and LanceDB are imported."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.store.left_out import left_out

IMPORTED = """
import sys
from pathlib import Path
from memoryd.store.lance import connect
connect(Path(sys.argv[1]))
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
print(sys.modules["lance_namespace_urllib3_client.api.table_api"].__spec__.origin)
"""


def test_module_that_is_left_out_never_runs_and_its_names_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "heavyweight"
    (package / "unused").mkdir(parents=True)
    (package / "__init__.py").write_text("from heavyweight.unused.client import Client\nUSED = 1\n")
    (package / "unused/__init__.py").write_text("")
    (package / "unused/client.py").write_text("raise RuntimeError('it ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with left_out("heavyweight.unused."):
        module = importlib.import_module("heavyweight")
    assert module.USED == 1
    assert module.Client.__name__ == "Client"
    for name in [name for name in sys.modules if name.startswith("heavyweight")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(RuntimeError, match="it ran"):
        importlib.import_module("heavyweight")


def test_lancedb_comes_without_its_rest_client_and_arrow_with_the_c_librarys_memory(tmp_path: Path) -> None:
    """Arrow's own allocator grows with every write, and the client takes half of the import."""
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    words = [sys.executable, "-c", IMPORTED, str(tmp_path)]
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert found.split() == ["system", "None"]
