"""The folders that memoryd writes: whose they are, who else may look, how much room they have, what they are on."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.doctor.finding import Finding, ok, problem, warning

# File systems on which inotify does not tell of what another machine changes, and locks may not hold.
NETWORK = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "coda", "ncpfs", "lustre", "beegfs", "gpfs",
        "glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.cephfs", "fuse.gvfsd-fuse",
        "vboxsf", "prl_fs", "vmhgfs", "fuse.vmhgfs-fuse", "virtiofs", "drvfs",
    }
)  # fmt: skip
_LITTLE, _TOO_LITTLE = 1_000_000_000, 100_000_000  # bytes
_FEW_INODES = 1000
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class FolderFacts:
    path: Path
    exists: bool
    is_folder: bool
    is_symlink: bool
    owner: int
    mode: int
    writable: bool  # the folder, or where there is none yet the nearest one above
    free_bytes: int
    free_inodes: int | None  # None: the file system has no fixed number
    file_system: str  # its type, as mount names it


def gather_folder(path: Path) -> FolderFacts:
    there = path
    while not _exists(there) and there != there.parent:
        there = there.parent
    found, room = there.stat(), os.statvfs(there)
    return FolderFacts(
        path=path,
        exists=there == path,
        is_folder=there.is_dir(),
        is_symlink=there == path and path.is_symlink(),
        owner=found.st_uid,
        mode=stat.S_IMODE(found.st_mode),
        writable=os.access(there, os.W_OK | os.X_OK, effective_ids=True),
        free_bytes=room.f_bavail * room.f_frsize,
        free_inodes=room.f_favail if room.f_files else None,
        file_system=file_system_of(there, read_mounts()),
    )


def _exists(path: Path) -> bool:
    """Whether it can be looked at; what is behind a closed door cannot, and the door is the nearest that can."""
    try:
        return path.exists()
    except OSError:
        return False


def check_folder(name: str, setting: str, facts: FolderFacts, uid: int) -> Finding:
    """Whether it is there or can be made, and is this user's alone."""
    path = facts.path
    if not facts.is_folder:
        return problem(name, f"{path} is in the way: not a folder", f"Move it away, or set {setting}")
    if facts.is_symlink:
        return problem(name, f"{path} is a symlink", f"Set {setting} to the real folder")
    if not facts.writable:
        return problem(name, f"{path} cannot be written", f"Make it yours (chown, chmod 700), or set {setting}")
    if not facts.exists:
        return ok(name, f"{path} is made when it is needed")
    if facts.owner != uid:
        return problem(name, f"{path} belongs to user {facts.owner}", f"chown it to you, or set {setting}")
    if facts.mode & 0o077:
        return warning(name, f"{path} is open to other users (mode {facts.mode:o})", f"chmod 700 {path}")
    return ok(name, f"{path} is yours alone")


def check_space(name: str, facts: FolderFacts, need: int) -> Finding:
    """``need``: bytes that will certainly be written."""
    said = f"{facts.free_bytes // _MB:,} MB free for {facts.path}"
    if facts.free_bytes < max(_TOO_LITTLE, need):
        wanted = f", and {need // _MB:,} MB are needed" if need else ""
        return problem(name, f"{said}{wanted}", "Free some space on that disk, or move the folder with [paths]")
    if facts.free_inodes is not None and facts.free_inodes < _FEW_INODES:
        return problem(name, f"{facts.free_inodes} inodes left for {facts.path}", "Delete files on that disk")
    if facts.free_bytes < _LITTLE:
        return warning(name, said, "Free some space on that disk before it is full")
    return ok(name, said)


def check_file_system(name: str, setting: str, facts: FolderFacts) -> Finding:
    """SQLite's shared memory and locks want a disk of this machine."""
    if facts.file_system in NETWORK:
        return problem(
            name,
            f"{facts.path} is on {facts.file_system}, a network file system: the stores can be damaged there",
            f"Set {setting} to a folder on a disk of this machine",
        )
    return ok(name, f"{facts.path} is on {facts.file_system or 'an unknown file system'}")


def file_system_of(path: Path, mounts: str) -> str:
    """The type of the mount that a path is on; ``mounts`` is /proc/self/mountinfo. Empty: unknown."""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of several at one place, the last is on top
            best, kind = point, after.split()[0]
    return kind


def read_mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
