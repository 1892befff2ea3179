"""systemd's user manager, asked by its own programs; the only module that runs them."""

from __future__ import annotations

import os
import shutil
import subprocess

from memoryd.daemon.units import SERVICE
from memoryd.store.errors import ServiceFailed, ServiceUnavailable

_SHOWN = (
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "MainPID",
    "NRestarts",
    "Result",
    "StatusText",
    "ActiveEnterTimestamp",
    "MemoryCurrent",
)
_ANSWER_SECONDS = 120  # systemctl itself waits for a start that may take as long as TimeoutStartSec


class ServiceManager:
    """``systemctl --user`` and its like. ``dry``: nothing is changed, looking is allowed."""

    def __init__(self, *, dry: bool = False) -> None:
        self.dry = dry

    def check(self, foreground: str) -> None:
        """Raises ``ServiceUnavailable`` with the command for the foreground where there is no manager to ask."""
        hint = f"Run it in the foreground instead: {foreground}"
        if shutil.which("systemctl") is None:
            raise ServiceUnavailable("systemd is not installed here: there is no systemctl", hint=hint)
        done = self._call("systemctl", "--user", "show", "--property=Version")
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise ServiceUnavailable(
                f"systemd's user manager does not answer: {said[0] if said else 'systemctl failed'}",
                hint=f"{hint} (a manager is there after a login; with su or sudo it is not)",
            )

    def run(self, *words: str) -> None:
        """``systemctl --user``. Raises ``ServiceFailed`` with what it said."""
        if self.dry:
            return
        done = self._call("systemctl", "--user", *words)
        if done.returncode != 0:
            said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise ServiceFailed(
                f"'systemctl --user {' '.join(words)}' failed: {said}", hint="See 'memoryd service logs'"
            )

    def start(self, verb: str, *units: str) -> None:
        """start or restart, whatever failed before: the limit on restarts is for systemd, not for a person."""
        if not self.dry:
            self._call("systemctl", "--user", "reset-failed", *units)
        self.run(verb, *units)

    def show(self, unit: str = SERVICE) -> dict[str, str]:
        """What systemd knows of a unit, by its own names; nothing where it cannot be asked."""
        if shutil.which("systemctl") is None:
            return {}
        done = self._call("systemctl", "--user", "show", unit, f"--property={','.join(_SHOWN)}")
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    def is_known(self) -> bool:
        """Whether there is such a service, wherever its unit file is."""
        return self.show().get("LoadState") == "loaded"

    def is_active(self, unit: str = SERVICE) -> bool:
        return self.show(unit).get("ActiveState") in ("active", "activating", "reloading")

    def lingers(self) -> bool | None:
        """Whether services of this user go on after the last logout; None = nobody can tell."""
        if shutil.which("loginctl") is None:
            return None
        done = self._call("loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value")
        return {"yes": True, "no": False}.get(done.stdout.strip())

    def follow_logs(self, *words: str) -> int:
        """journalctl on our own terminal, until it ends; its exit code."""
        if shutil.which("journalctl") is None:
            raise ServiceUnavailable("systemd's journal is not here: there is no journalctl")
        return subprocess.run(["journalctl", f"--user-unit={SERVICE}", *words], check=False).returncode  # noqa: S607 - the user's PATH decides

    def may_have_namespaces(self) -> bool:
        """Whether a process of this user may make a user namespace and mount in it, as a sandbox does."""
        if shutil.which("unshare") is None:
            return False
        return self._call("unshare", "--user", "--mount", "--map-current-user", "true").returncode == 0

    @staticmethod
    def _call(*words: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(words, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServiceFailed(f"'{' '.join(words)}' did not end: {error}") from error
