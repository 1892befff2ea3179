"""Files as Linux writes them about the machine, below a root of the test's own."""

from __future__ import annotations

from pathlib import Path


def set_pressure(root: Path, percent: float) -> None:
    """What /proc/pressure/cpu says of the last ten seconds."""
    file = root / "proc/pressure/cpu"
    file.parent.mkdir(parents=True, exist_ok=True)
    rest = "avg60=1.00 avg300=2.00 total=123456"
    _replace(file, f"some avg10={percent:.2f} {rest}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")


def set_supply(root: Path, name: str, **facts: str) -> None:
    """A folder of /sys/class/power_supply, a file for each fact."""
    folder = root / "sys/class/power_supply" / name
    folder.mkdir(parents=True, exist_ok=True)
    for fact, value in facts.items():
        _replace(folder / fact, f"{value}\n")


def set_battery(root: Path, *, plugged: bool) -> None:
    """A laptop's two supplies."""
    set_supply(root, "AC", type="Mains", online=str(int(plugged)))
    set_supply(root, "BAT0", type="Battery", status="Charging" if plugged else "Discharging")


def _replace(file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(text)
    beside.replace(file)
