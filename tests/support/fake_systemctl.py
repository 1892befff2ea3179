"""A systemctl, loginctl and journalctl that keep a diary and remember what runs: systemd behind a process boundary."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = f"""#!{sys.executable}
import json, pathlib, sys
folder = pathlib.Path(__file__).parent
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
state_file = folder / "state.json"
state = json.loads(state_file.read_text())
if name == "loginctl":
    print(state["linger"]); sys.exit()
if state["broken"]:
    sys.stderr.write("Failed to connect to bus: No medium found\\n"); sys.exit(1)
words = [word for word in words if word != "--user"]
if name == "journalctl":
    print("journal", *words); sys.exit()
if words[0] != "show":
    with (folder / "diary").open("a") as diary:
        diary.write(" ".join(words) + "\\n")
if words[0] in state["failing"]:
    sys.stderr.write("Job failed.\\nSee the journal.\\n"); sys.exit(1)
units = [word for word in words[1:] if not word.startswith("-")]
if words[0] == "show":
    unit = units[0] if units else ""
    print("LoadState=" + ("loaded" if unit in state["enabled"] else "not-found"))
    print("ActiveState=" + ("active" if unit in state["active"] else "inactive"))
    print("SubState=" + ("running" if unit in state["active"] else "dead"))
    print("UnitFileState=" + ("enabled" if unit in state["enabled"] else ""))
    print("MainPID=77\\nNRestarts=2\\nResult=success\\nStatusText=serving 1 workspace")
for unit in units:
    for verb, field, present in (("enable", "enabled", True), ("disable", "enabled", False), ("start", "active", True),
                                 ("restart", "active", True), ("stop", "active", False), ("disable", "active", False)):
        if words[0] == verb:
            state[field] = [each for each in state[field] if each != unit] + [unit] * present
state_file.write_text(json.dumps(state))
"""


@dataclass
class FakeSystemd:
    folder: Path  # goes first on PATH

    def __post_init__(self) -> None:
        self.folder.mkdir()
        for name in ("systemctl", "loginctl", "journalctl"):
            (self.folder / name).write_text(_SCRIPT)
            (self.folder / name).chmod(0o755)
        self.set(broken=False, failing=[], active=[], enabled=[], linger="no")

    def set(self, **state: object) -> None:
        file = self.folder / "state.json"
        file.write_text(json.dumps({**(json.loads(file.read_text()) if file.exists() else {}), **state}))

    def calls(self) -> list[str]:
        """What was asked to be changed since the last look."""
        diary = self.folder / "diary"
        said = diary.read_text().splitlines() if diary.exists() else []
        diary.unlink(missing_ok=True)
        return said
