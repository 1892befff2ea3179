"""Where things are kept, and that only their owner can look."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memoryd.daemon.config import Config, Locations
from memoryd.daemon.paths import default_config_file, ensure_private, expand_path, find_paths
from memoryd.store.errors import ConfigInvalid, StoreUnavailable


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_xdg_variables_are_followed() -> None:
    environ = {
        "XDG_CONFIG_HOME": "/c",
        "XDG_DATA_HOME": "/d",
        "XDG_CACHE_HOME": "/k",
        "XDG_RUNTIME_DIR": "/r",
    }
    paths = find_paths(Config(), environ)
    assert paths.config_file == Path("/c/memoryd/config.toml")
    assert paths.data_dir == Path("/d/memoryd")
    assert paths.database == Path("/d/memoryd/ledger.db")
    assert paths.vectors_dir == Path("/d/memoryd/vectors")
    assert paths.lock_file == Path("/d/memoryd/lock")
    assert paths.models_dir == Path("/k/memoryd/models")
    assert paths.socket == Path("/r/memoryd/memoryd.sock")


def test_without_xdg_variables_the_home_folder_is_used() -> None:
    paths = find_paths(Config(), {"HOME": "/home/x", "XDG_DATA_HOME": "relative/counts/as/unset"})
    assert paths.data_dir == Path("/home/x/.local/share/memoryd")
    assert paths.cache_dir == Path("/home/x/.cache/memoryd")
    assert default_config_file({"HOME": "/home/x"}) == Path("/home/x/.config/memoryd/config.toml")


def test_without_a_runtime_folder_the_socket_is_never_in_a_shared_one() -> None:
    socket = find_paths(Config(), {"HOME": "/home/x"}).socket
    private = {Path(f"/run/user/{os.getuid()}/memoryd"), Path("/home/x/.local/share/memoryd/run")}
    assert socket.parent in private


def test_configured_locations_win() -> None:
    config = Config(paths=Locations(data="/a", cache="/b", socket="/c/s.sock"), file=Path("/x.toml"))
    paths = find_paths(config, {"XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r"})
    assert (paths.data_dir, paths.cache_dir, paths.socket) == (Path("/a"), Path("/b"), Path("/c/s.sock"))
    assert paths.config_file == Path("/x.toml")


def test_socket_path_may_have_107_bytes_and_no_more() -> None:
    fits = "/" + "x" * 106
    assert find_paths(Config(paths=Locations(socket=fits)), {}).socket == Path(fits)
    with pytest.raises(ConfigInvalid, match=r"paths\.socket: .* has 108 bytes") as caught:
        find_paths(Config(paths=Locations(socket="/" + "é" * 53 + "x")), {})
    assert "MEMORYD_PATHS__SOCKET" in (caught.value.hint or "")


def test_written_paths_are_expanded(tmp_path: Path) -> None:
    environ = {"HOME": "/home/x", "DIR": "sub"}
    assert expand_path("a/$DIR/b", tmp_path, environ) == tmp_path / "a/sub/b"
    assert expand_path("~", tmp_path, environ) == Path("/home/x")
    assert expand_path("~//a", tmp_path, environ) == Path("/home/x/a")
    assert expand_path("/a/${DIR}x", tmp_path, environ) == Path("/a/subx")
    with pytest.raises(ValueError, match="no user no-such-user"):
        expand_path("~no-such-user/x", tmp_path, environ)


def test_private_folder_is_private_from_birth(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    before = os.umask(0)
    try:
        ensure_private(folder)
    finally:
        os.umask(before)
    assert mode(folder) == mode(folder.parent) == 0o700
    ensure_private(folder)


def test_own_folder_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    ensure_private(folder)
    assert mode(folder) == 0o700


def test_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ConfigInvalid, match="is a symlink") as caught:
        ensure_private(tmp_path / "link")
    assert "paths.data" in (caught.value.hint or "")


def test_dangling_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(ConfigInvalid):
        ensure_private(tmp_path / "link")


def test_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigInvalid, match="file is not a folder"):
        ensure_private(tmp_path / "file")
    with pytest.raises(ConfigInvalid, match="is not a folder"):
        ensure_private(tmp_path / "file" / "inner" / "most")


def test_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.getuid() == 0:
        folder = tmp_path / "theirs"
        folder.mkdir()
        os.chown(folder, 12345, -1)
    else:
        folder = Path("/usr")
    with pytest.raises(ConfigInvalid, match="belongs to user"):
        ensure_private(folder)


def test_folder_that_cannot_be_made_says_why() -> None:
    with pytest.raises(StoreUnavailable, match="cannot make /proc/memoryd"):
        ensure_private(Path("/proc/memoryd"))
