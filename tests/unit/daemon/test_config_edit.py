"""Settings written into a file that a person keeps: everything else stays as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from memoryd.daemon.config_edit import edit_text, set_values
from memoryd.store.errors import ConfigInvalid
from tests.support.privileges import public_folder, unprivileged

EXAMPLE = Path(__file__).parents[3] / "config.example.toml"


@pytest.mark.parametrize(
    ("text", "key", "edited"),
    [
        ("", "search.limit", "[search]\nlimit = 7\n"),
        ("[search]", "search.limit", "[search]\nlimit = 7\n"),
        ("# mine", "search.limit", "# mine\n\n[search]\nlimit = 7\n"),
        ("[search]\nlimit = 3 # why\n", "search.limit", "[search]\nlimit = 7 # why\n"),
        ("[search]\n# why\nlimit = 3\n", "search.rrf_k", "[search]\nrrf_k = 7\n# why\nlimit = 3\n"),
        ("[search]\n#rrf_k = 10\n#limit = 6\n", "search.limit", "[search]\n#rrf_k = 10\nlimit = 7\n"),
        ("[search]\n[index]\n#limit = 6\n", "search.limit", "[search]\nlimit = 7\n[index]\n#limit = 6\n"),
        ("[ search ]\n\n# next\n[index]\n", "search.limit", "[ search ]\nlimit = 7\n\n# next\n[index]\n"),
        ("search.limit = 3 # why\n[index]\n", "search.limit", "search.limit = 7 # why\n[index]\n"),
        ("search.limit = 3\n[index]\n", "search.rrf_k", "search.limit = 3\nsearch.rrf_k = 7\n[index]\n"),
        ("[search.weights]\nwords = 1\n", "search.limit", "[search]\nlimit = 7\n\n[search.weights]\nwords = 1\n"),
        ("[search]\nweights = {words = 1} # x\n", "search.weights.words", "[search]\nweights = {words = 7} # x\n"),
        ("[search]\nweights.words = 1 # x\n", "search.weights.words", "[search]\nweights.words = 7 # x\n"),
        (
            "[search]\nlimit = 1\n[index]\n[search.weights]\nwords = 1 # x\n",
            "search.weights.words",
            "[search]\nlimit = 1\n[index]\n[search.weights]\nwords = 7 # x\n",
        ),
        (
            "[search]\nlimit = 1\n\n# next\n[index]\n",
            "search.weights.words",
            "[search]\nlimit = 1\n\n# next\n[index]\n\n[search.weights]\nwords = 7\n",
        ),
        ("[search]\r\n# why\r\nlimit = 3 # x\r\n", "search.limit", "[search]\r\n# why\r\nlimit = 7 # x\r\n"),
        ("[search]\r\n# why\r\n", "search.limit", "[search]\r\nlimit = 7\r\n# why\r\n"),
    ],
)
def test_value_is_put_where_a_person_would(text: str, key: str, edited: str) -> None:
    assert edit_text(text, {key: 7}) == edited


def test_example_is_taken_up_line_by_line() -> None:
    before = EXAMPLE.read_text(encoding="utf-8").splitlines()
    values = {"search.fusion": "rrf", "search.weights.vector": 0.5, "embedder.model": "x"}
    after = edit_text(EXAMPLE.read_text(encoding="utf-8"), values).splitlines()
    assert len(after) == len(before)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert [new for _, new in changed] == ['model = "x"', 'fusion = "rrf"', "vector = 0.5"]
    assert all(old.startswith("#" + new.partition("=")[0]) for old, new in changed)


@pytest.mark.parametrize(
    "text", ["[search", "search = 3\n", 'text = """\n[search]\n"""\n', "[search]\nweights = 1\n"], ids=repr
)
def test_what_cannot_be_edited_for_sure_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigInvalid, match="cannot be changed") as caught:
        set_values(file, {"search.limit": 7, "search.weights.words": 1.0})
    assert caught.value.hint == "Set search.limit = 7, search.weights.words = 1.0 yourself"
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    file = tmp_path / "memoryd/config.toml"
    set_values(file, {"embedder.model": 'a "quoted" name'})
    assert tomllib.loads(file.read_text()) == {"embedder": {"model": 'a "quoted" name'}}


def test_link_and_permissions_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    real.chmod(0o600)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    set_values(link, {"search.limit": 7})
    assert link.is_symlink()
    assert real.read_text() == "# mine\n\n[search]\nlimit = 7\n"
    assert real.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [link, real]


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555), (0o000, 0o777)])
def test_file_that_may_not_be_written_is_named_with_what_to_set(file_mode: int, folder_mode: int) -> None:
    with public_folder() as folder:
        file = folder / "config.toml"
        file.write_text("# mine\n")
        file.chmod(file_mode)
        folder.chmod(folder_mode)
        with unprivileged(), pytest.raises(ConfigInvalid) as caught:
            set_values(file, {"search.fusion": "rrf"})
        folder.chmod(0o755)
        file.chmod(0o644)
        assert caught.value.message.startswith(f"{file} cannot be written: ")
        assert caught.value.hint == 'Set search.fusion = "rrf" yourself'
        assert file.read_text() == "# mine\n"
