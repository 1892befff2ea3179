"""Packages whose own code waits until something of it is used; in a process of its own, for imports stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "heavy"
    folder.mkdir()
    (folder / "__init__.py").write_text("print('loaded')\nfrom heavy.client import Client\n")
    (folder / "client.py").write_text("class Client: pass\n")
    (folder / "models.py").write_text("class Model: pass\n")
    return tmp_path


def run(code: str, path: Path) -> list[str]:
    late = "from memoryd.store.late_import import import_when_used\n"
    done = subprocess.run(
        [sys.executable, "-c", late + code],
        env={"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout.split()


def test_submodule_is_imported_without_the_code_of_its_package(package: Path) -> None:
    code = "import_when_used('heavy')\nfrom heavy.models import Model\nprint(Model.__name__)"
    assert run(code, package) == ["Model"]


def test_package_that_is_asked_for_a_name_is_loaded_once(package: Path) -> None:
    code = "import_when_used('heavy')\nimport heavy\nfrom heavy import Client\nprint(heavy.Client.__name__)"
    assert run(code, package) == ["loaded", "Client"]


def test_name_that_is_not_there_is_missing_as_ever(package: Path) -> None:
    code = "import_when_used('heavy')\nimport heavy\nprint(hasattr(heavy, 'nothing'))"
    assert run(code, package) == ["loaded", "False"]


def test_package_that_is_imported_or_missing_is_left_alone(package: Path) -> None:
    code = "import heavy\nimport_when_used('heavy')\nimport_when_used('nothing')\nprint(heavy.Client.__name__)"
    assert run(code, package) == ["loaded", "Client"]


def test_client_that_lancedb_does_not_use_is_not_loaded(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from memoryd.store.lance import open_or_create
from memoryd.store.place import as_place
open_or_create(as_place(Path({str(tmp_path)!r})), "fake", 4, "float32")[0].count_rows()
print([name for name in sys.modules if name.startswith("lance_namespace_urllib3_client.api")])
"""
    assert run(code, tmp_path) == ["[]"]
