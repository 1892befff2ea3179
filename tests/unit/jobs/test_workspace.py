"""Which files are in a workspace, and what a look at the disk may conclude."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from memoryd.daemon.config import IGNORE, INCLUDE
from memoryd.jobs.workspace import Workspace, check_same_disk, scan
from memoryd.store.errors import WorkspaceUnavailable
from tests.support.privileges import public_folder, unprivileged


def make(root: Path, *include: str, ignore: tuple[str, ...] = IGNORE) -> Workspace:
    return Workspace("notes", root, include or INCLUDE, ignore)


def write(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {path}\n")


def test_default_globs_find_memory_and_skills_and_nothing_else(tmp_path: Path) -> None:
    write(
        tmp_path,
        "MEMORY.md", "memory/a.md", "memory/deep/er/b.md", "skills/x/SKILL.md",
        "README.md", "memory.md", "memory/c.txt", "docs/d.md", "sub/memory/e.md", "sub/MEMORY.md",
    )  # fmt: skip
    assert set(scan(make(tmp_path)).files) == {"MEMORY.md", "memory/a.md", "memory/deep/er/b.md", "skills/x/SKILL.md"}


def test_noise_of_editors_is_ignored(tmp_path: Path) -> None:
    write(
        tmp_path,
        "memory/.hidden.md", "memory/.git/x.md", "memory/node_modules/p/README.md", "memory/a.md~",
        "memory/.a.md.swp", "memory/b.md.tmp", "memory/.obsidian/plugin/c.md", "memory/ok.md",
    )  # fmt: skip
    assert set(scan(make(tmp_path)).files) == {"memory/ok.md"}


def test_pattern_below_another_ones_folder_is_looked_at(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "memory/deep/er/b.md", "memory/other/c.md")
    workspace = make(tmp_path, "memory/*.md", "memory/deep/**/*.md")
    assert set(scan(workspace).files) == {"memory/a.md", "memory/deep/er/b.md"}
    assert workspace.folders() == ["memory"]
    assert workspace.is_deep("memory")


def test_pattern_that_ends_in_a_slash_means_all_below(tmp_path: Path) -> None:
    write(tmp_path, "notes/a.md", "notes/deep/b.md", "c.md")
    workspace = make(tmp_path, "notes/")
    assert set(scan(workspace).files) == {"notes/a.md", "notes/deep/b.md"}
    assert workspace.is_deep("notes")


def test_pattern_of_fixed_depth_is_not_searched_deeper(tmp_path: Path) -> None:
    write(tmp_path, "a/x.md", "a/b/x.md", "b/x.md")
    workspace = make(tmp_path, "*/x.md")
    assert set(scan(workspace).files) == {"a/x.md", "b/x.md"}
    assert workspace.may_hold("a")
    assert not workspace.may_hold("a/b")


def test_everything_can_be_included(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b/c.md", "memory/d.md")
    assert set(scan(make(tmp_path, "**/*.md", "memory/**/*.md")).files) == {"a.md", "b/c.md", "memory/d.md"}


def test_look_below_a_folder_or_a_file_sees_only_that(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory/a.md", "memory/ab.md", "memory/a/b.md", "memory/a/c/d.md")
    workspace = make(tmp_path)
    assert set(scan(workspace, "memory/a").files) == {"memory/a/b.md", "memory/a/c/d.md"}
    assert set(scan(workspace, "memory/a.md").files) == {"memory/a.md"}
    assert set(scan(workspace, "MEMORY.md").files) == {"MEMORY.md"}
    assert scan(workspace, "memory/gone").files == {}


def test_link_to_a_file_inside_is_followed_and_one_to_outside_is_named(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root, "docs/real.md")
    write(outside, "secret.md")
    (root / "memory").mkdir()
    (root / "memory/inside.md").symlink_to("../docs/real.md")
    (root / "memory/outside.md").symlink_to(outside / "secret.md")
    (root / "memory/nothing.md").symlink_to("nowhere.md")
    (root / "memory/itself.md").symlink_to("itself.md")
    found = scan(make(root))
    assert set(found.files) == {"memory/inside.md"}
    assert found.skipped == {
        "memory/outside.md": "a link to outside of the workspace",
        "memory/nothing.md": "a link to nothing",
        "memory/itself.md": "a link to nothing",
    }


def test_memory_folder_that_is_a_link_to_outside_is_named_and_not_entered(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside, "secret.md")
    root.mkdir()
    (root / "memory").symlink_to(outside)
    found = scan(make(root))
    assert found.files == {}
    assert found.skipped == {"memory": "a link to outside of the workspace"}


def test_link_to_a_folder_that_is_not_looked_at_otherwise_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs/more/b.md")
    (tmp_path / "memory").symlink_to("docs")
    assert set(scan(make(tmp_path)).files) == {"memory/a.md", "memory/more/b.md"}


def test_file_reached_through_a_linked_folder_is_found_once_under_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, "memory/real/a.md")
    (tmp_path / "memory/0-first").symlink_to("real")
    (tmp_path / "memory/z-last").symlink_to("real")
    workspace = make(tmp_path)
    assert set(scan(workspace).files) == {"memory/real/a.md"}
    assert scan(workspace, "memory/0-first").files == {}


@pytest.mark.parametrize("target", [".", "..", "../memory", "deep", "/"])
def test_links_in_a_circle_end(tmp_path: Path, target: str) -> None:
    write(tmp_path, "memory/a.md", "memory/deep/b.md")
    (tmp_path / "memory/deep/loop").symlink_to(target)
    assert set(scan(make(tmp_path)).files) == {"memory/a.md", "memory/deep/b.md"}


def test_links_in_a_circle_outside_the_globs_end(tmp_path: Path) -> None:
    write(tmp_path, "one/a.md", "two/b.md", "memory/c.md")
    (tmp_path / "memory/one").symlink_to("../one")
    (tmp_path / "one/two").symlink_to("../two")
    (tmp_path / "two/one").symlink_to("../one")
    assert set(scan(make(tmp_path)).files) == {"memory/c.md", "memory/one/a.md", "memory/one/two/b.md"}


def test_name_that_is_not_utf8_is_named_and_skipped(tmp_path: Path) -> None:
    write(tmp_path, "memory/ok.md")
    (tmp_path / "memory" / os.fsdecode(b"\xff.md")).write_text("x")
    (tmp_path / "memory" / os.fsdecode(b"\xfe")).mkdir()
    found = scan(make(tmp_path))
    assert set(found.files) == {"memory/ok.md"}
    assert found.skipped == {"memory/�.md": "its name is not UTF-8", "memory/�": "its name is not UTF-8"}


def test_named_pipe_is_named_and_skipped(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    os.mkfifo(tmp_path / "memory/pipe.md")
    found = scan(make(tmp_path))
    assert found.files == {}
    assert found.skipped == {"memory/pipe.md": "not a regular file"}


def test_folder_that_cannot_be_read_is_not_taken_for_empty() -> None:
    with public_folder() as root:
        write(root, "memory/open.md", "memory/closed/a.md", "memory/closed/deep/b.md", "memory/closed2/c.md")
        (root / "memory/closed").chmod(0o000)
        with unprivileged():
            found = scan(make(root))
        (root / "memory/closed").chmod(0o755)
    assert set(found.files) == {"memory/open.md", "memory/closed2/c.md"}
    assert found.unreadable == {"memory/closed": "Permission denied"}
    assert not found.could_look("memory/closed/a.md")
    assert not found.could_look("memory/closed/deep/b.md")
    assert found.could_look("memory/gone.md")
    assert found.could_look("memory/closed2/gone.md")


def test_folder_that_can_be_listed_but_not_entered_hides_its_files_without_losing_them() -> None:
    with public_folder() as root:
        write(root, "memory/closed/a.md")
        (root / "memory/closed").chmod(0o444)
        with unprivileged():
            found = scan(make(root))
        (root / "memory/closed").chmod(0o755)
    assert found.files == {}
    assert not found.could_look("memory/closed/a.md")


def test_missing_root_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceUnavailable, match="No such file"):
        scan(make(tmp_path / "gone"))


def test_root_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WorkspaceUnavailable):
        scan(make(tmp_path / "file"))


def test_missing_memory_folder_is_no_error(tmp_path: Path) -> None:
    assert scan(make(tmp_path)).files == {}


def test_nothing_left_on_the_same_disk_was_deleted(tmp_path: Path) -> None:
    write(tmp_path, "memory/deep/a.md")
    workspace = make(tmp_path)
    known = scan(workspace).files
    shutil.rmtree(tmp_path / "memory")
    check_same_disk(workspace, known)


def test_nothing_left_on_another_disk_is_away(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceUnavailable, match="not on the disk"):
        check_same_disk(make(tmp_path), {"memory/a.md": "1:2:3:4:5"})


def test_files_never_looked_at_are_on_no_disk(tmp_path: Path) -> None:
    check_same_disk(make(tmp_path), {"memory/a.md": ""})
    check_same_disk(make(tmp_path), {})


def test_signature_tells_an_edit_that_keeps_size_and_mtime(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md")
    workspace, file = make(tmp_path), tmp_path / "MEMORY.md"
    before, stat = scan(workspace).files, file.stat()
    # Kernel timestamps tick coarsely: write until the change time has moved on.
    while file.stat().st_ctime_ns == stat.st_ctime_ns:
        file.write_text("# memory.MD\n")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert scan(workspace).files != before
