"""A real systemd user manager for a user of its own, in namespaces of its own; gone when the test ends.

systemd need not be what the machine was started with. Root is needed to make the namespaces; the manager, and all that
it starts, runs as an ordinary user, with the real journald beside it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import PATIENCE_S, eventually

UID = 4242
HOME = Path("/home/tester")
_SYSTEMD = Path("/lib/systemd")
_TOOLS = ("unshare", "nsenter", "setpriv", "systemctl", "journalctl")

_INSIDE = """
set -e
mount --make-rprivate /
mkdir "$STAGE/held"
number=0
for path in $NEEDED; do
    number=$((number + 1)); mkdir "$STAGE/held/$number"; mount --rbind "$path" "$STAGE/held/$number"
done
for veil in $VEILS; do mount -t tmpfs -o mode=755 tmpfs "$veil"; done
number=0
for path in $NEEDED; do
    number=$((number + 1)); mkdir -p "$path"; mount --rbind "$STAGE/held/$number" "$path"
done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/systemd/journal /run/credentials /run/systemd/unit-root "/run/user/$USER_ID"
chown "$USER_ID" "/run/user/$USER_ID"; chmod 700 "/run/user/$USER_ID"
cp /etc/passwd "$STAGE/passwd"
echo "tester:x:$USER_ID:$USER_ID::$HOME_OF_USER:/bin/sh" >> "$STAGE/passwd"
mount --bind "$STAGE/passwd" /etc/passwd
mount -t tmpfs -o mode=755 tmpfs /home
mkdir "$HOME_OF_USER"
mount --bind "$HOME_OUTSIDE" "$HOME_OF_USER"
mount --bind /dev/null /dev/kmsg  # the kernel is not asked
mount -t tmpfs -o mode=755 tmpfs /var/log
mkdir /var/log/journal  # where users have journals of their own, which they may read
touch /run/systemd/journal/flushed
/lib/systemd/systemd-journald > "$STAGE/journald.log" 2>&1 &
while ! test -S /run/systemd/journal/socket; do sleep 0.05; done
# The journal tells a user's unit by where the group of its processes is, as a login puts it.
group=/sys/fs/cgroup/user.slice/user-$USER_ID.slice/user@$USER_ID.service
mkdir -p "$group"
chown -R "$USER_ID" "$group"
sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" \
    setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups env -i PATH="$PATH" HOME="$HOME_OF_USER" LANG=C.UTF-8 \
    XDG_RUNTIME_DIR="/run/user/$USER_ID" /lib/systemd/systemd --user --unit=default.target --log-target=journal \
    > "$STAGE/manager.log" 2>&1 &
wait
"""


def why_not() -> str | None:
    """Why a manager cannot be had here; None = it can."""
    if os.geteuid() != 0:
        return "a user manager of its own takes root"
    if missing := [tool for tool in _TOOLS if not shutil.which(tool)]:
        return f"not installed: {', '.join(missing)}"
    if not all((_SYSTEMD / name).exists() for name in ("systemd", "systemd-journald")):
        return "systemd is not installed"
    if _cgroups() is None:
        return "there is no cgroup2 in which a group can be made"
    trial = subprocess.run(["unshare", "-m", "-C", "-p", "-f", "true"], capture_output=True, check=False)
    return None if trial.returncode == 0 else "this machine does not let root make namespaces"


@dataclass
class UserManager:
    outside: Path  # the user's home, as the test sees it
    _inside: int  # a process in the namespaces, as we see it
    _stage: Path

    @property
    def home(self) -> Path:
        """As the user sees it: where homes are, so that a sandbox treats it as one."""
        return HOME

    @property
    def runtime(self) -> Path:
        """As the user sees it; from outside it cannot be seen."""
        return Path(f"/run/user/{UID}")

    def run(self, *words: str | Path, root: bool = False) -> subprocess.CompletedProcess[str]:
        """A command as the user, in a shell's environment."""
        with self.start(*words, root=root) as process:
            try:
                stdout, stderr = process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)

    def start(self, *words: str | Path, root: bool = False) -> subprocess.Popen[str]:
        """The same, without waiting for its end."""
        become = [] if root else ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        return subprocess.Popen(
            ["nsenter", f"--target={self._inside}", "--mount", "--pid", "--cgroup", *become, *words],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
                "XDG_RUNTIME_DIR": str(self.runtime),
            },
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def log(self) -> str:
        return (self._stage / "manager.log").read_text(errors="replace")


@contextmanager
def run_user_manager(folder: Path, needed: list[Path]) -> Iterator[UserManager]:
    """``needed`` are folders that the user has to be able to read, wherever they are."""
    home = folder / "home"
    home.mkdir()
    os.chown(home, UID, UID)
    group = Path(tempfile.mkdtemp(prefix="memoryd-test-", dir=_cgroups()))
    stage = Path(tempfile.mkdtemp(prefix="memoryd-stage-"))
    stage.chmod(0o755)
    for above in [*folder.parents][:-1]:
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001 and above.is_relative_to("/tmp"):
            above.chmod(above.stat().st_mode | 0o011)
    folder.chmod(0o755)
    for each in (group, *group.iterdir()):
        os.chown(each, UID, UID)
    reached = [path.resolve() for path in (Path(sys.prefix), Path(sys.base_prefix), *needed)]
    veils = {veil for path in reached for veil in [_barrier(path)] if veil}
    environment = {
        **os.environ,
        "STAGE": str(stage),
        "USER_ID": str(UID),
        "HOME_OF_USER": str(HOME),
        "HOME_OUTSIDE": str(home),
        "VEILS": " ".join(map(str, veils)),
        "NEEDED": " ".join(str(path) for path in reached if _barrier(path)),
    }
    enter = f'echo $$ > {group}/cgroup.procs && exec unshare -m -C -p -f --kill-child --mount-proc sh -c "$INSIDE"'
    process = subprocess.Popen(["sh", "-c", enter], env={**environment, "INSIDE": _INSIDE}, stderr=subprocess.PIPE)
    try:
        inside = eventually(lambda: _child_of(process), what="the namespaces are made")
        manager = UserManager(home, inside, stage)
        eventually(
            lambda: "running" in manager.run("systemctl", "--user", "is-system-running").stdout,
            what="the user manager runs",
        )
        yield manager
    finally:
        for child in [_child_of(process)]:
            if child:
                os.kill(child, signal.SIGKILL)  # the first process of the namespace takes all others along
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        eventually(lambda: _remove_groups(group), what="the control groups are empty")
        shutil.rmtree(stage, ignore_errors=True)


def _cgroups() -> Path | None:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup2" and "rw" in options.split(",") and os.access(where, os.W_OK):
            return Path(where)
    return None


def _remove_groups(group: Path) -> bool:
    try:
        for each in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            each.rmdir()
        group.rmdir()
    except OSError:
        return False
    return True


def _child_of(process: subprocess.Popen[bytes]) -> int | None:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        found = children.read_text().split()
    except OSError:
        return None
    return int(found[0]) if found else None


def _barrier(path: Path) -> Path | None:
    """The folder above that keeps other users out."""
    return next((above for above in reversed(path.parents) if not above.stat().st_mode & 0o001), None)
