"""What Linux tells of the machine, from files as it writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.jobs.surroundings import look_around, read_power, read_pressure
from tests.support.surroundings import set_pressure, set_supply

MAINS, PLUGGED = {"type": "Mains", "online": "0"}, {"type": "Mains", "online": "1"}
CHARGING, DISCHARGING = {"type": "Battery", "status": "Charging"}, {"type": "Battery", "status": "Discharging"}
MOUSE = {"type": "Battery", "status": "Discharging", "scope": "Device"}


@pytest.mark.parametrize(
    ("supplies", "on_battery"),
    [
        ([], None),
        ([PLUGGED], None),  # a desktop that tells of its plug
        ([MOUSE], None),
        ([PLUGGED, MOUSE], None),
        ([PLUGGED, CHARGING], False),
        ([PLUGGED, DISCHARGING], False),  # a charger too weak for what the machine needs
        ([MAINS, DISCHARGING], True),
        ([MAINS, {"type": "Battery", "status": "Unknown"}], True),
        ([MAINS, {"type": "USB", "online": "1"}, CHARGING], False),
        ([MAINS, {"type": "USB", "online": "0"}, DISCHARGING], True),
        ([DISCHARGING], True),
        ([CHARGING], False),
        ([{"type": "Battery", "status": "Full"}, DISCHARGING], True),  # two, one after the other
        ([{"type": "UPS", "status": "Discharging"}], True),
        ([{"type": "Battery"}], False),
        ([{}], None),
    ],
)
def test_power_comes_from_a_battery_or_it_does_not(
    tmp_path: Path, supplies: list[dict[str, str]], on_battery: bool | None
) -> None:
    for number, facts in enumerate(supplies):
        set_supply(tmp_path, f"supply{number}", **facts)
    assert read_power(tmp_path) is on_battery


def test_pressure_is_that_of_the_last_ten_seconds(tmp_path: Path) -> None:
    set_pressure(tmp_path, 12.34)
    assert read_pressure(tmp_path) == 12.34


@pytest.mark.parametrize("told", ["", "full avg10=99.00 avg60=0.00\n", "some avg10=many\n", "\x00"])
def test_pressure_that_is_not_told_is_unknown(tmp_path: Path, told: str) -> None:
    (tmp_path / "proc/pressure").mkdir(parents=True)
    (tmp_path / "proc/pressure/cpu").write_text(told)
    assert read_pressure(tmp_path) is None


def test_machine_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    seen = look_around(tmp_path / "nowhere")
    assert (seen.pressure, seen.on_battery) == (None, None)


def test_this_machine_can_be_looked_at() -> None:
    seen = look_around()
    assert seen.pressure is None or 0 <= seen.pressure <= 100
