"""Settings of [search] changed while memoryd runs: every limit is the configuration's own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.config import Config, Search, Weights
from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_schema import Setting, value_of
from memoryd.daemon.live_settings import AT_START, SEARCH_SETTINGS, LiveSettings, lay_over, read_table
from memoryd.store.errors import ConfigInvalid, InvalidParams

CHANGEABLE = [setting for key, setting in SEARCH_SETTINGS.items() if key not in AT_START]
NUMBERS = [setting for setting in CHANGEABLE if setting.kind in (int, float)]


def nest(key: str, value: Any) -> dict[str, Any]:
    table, _, name = key.rpartition(".")
    return {table: {name: value}} if table else {name: value}


def change(table: dict[str, Any]) -> Search:
    return lay_over(Search(), read_table(table))


def refused(table: dict[str, Any]) -> str:
    with pytest.raises(InvalidParams) as caught:
        change(table)
    assert caught.value.hint
    return caught.value.message


def beyond(setting: Setting) -> list[float]:
    """Numbers just outside the limits."""
    step = 1 if setting.kind is int else 0.001
    assert setting.high is not None
    low = setting.above if setting.low is None else setting.low - step
    assert low is not None
    return [low, setting.high + step]


def within(setting: Setting) -> list[float]:
    assert setting.high is not None
    low = (setting.above or 0) + 0.001 if setting.low is None else setting.low
    return [low, setting.high]


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.key)
def test_every_number_is_taken_up_to_its_limits_and_refused_beyond(setting: Setting) -> None:
    for number in within(setting):
        assert value_of(change(nest(setting.key, number)), setting.key) == number
    for number in beyond(setting):
        message = refused(nest(setting.key, number))
        assert message.startswith(f"settings.{setting.key}: found ")
        assert setting.allowed in message


@pytest.mark.parametrize("setting", CHANGEABLE, ids=lambda setting: setting.key)
@pytest.mark.parametrize("value", ["off", [1], {"a": 1}, 10**400, 1e300])
def test_what_is_of_another_kind_is_refused_with_what_is_allowed(setting: Setting, value: object) -> None:
    assert f"settings.{setting.key}: found " in refused(nest(setting.key, value))
    assert setting.allowed in refused(nest(setting.key, value))


@pytest.mark.parametrize("value", ["maybe", "RRF", "", True, 1])
def test_fusion_is_one_of_its_choices(value: object) -> None:
    assert change({"fusion": "rrf"}).fusion == "rrf"
    assert "allowed: weighted or rrf" in refused({"fusion": value})


def test_part_of_a_table_leaves_the_rest_as_it_is() -> None:
    laid = change({"weights": {"vector": 0}, "decay": {"strength": 1}, "adaptive": False})
    assert laid.weights == Weights(vector=0.0)
    assert (laid.decay.strength, laid.decay.half_life_days) == (1.0, Search().decay.half_life_days)
    assert laid.adaptive is False
    assert asdict(laid) | {"weights": 0, "decay": 0, "adaptive": 0} == asdict(Search()) | {
        "weights": 0,
        "decay": 0,
        "adaptive": 0,
    }


def test_true_or_false_is_short_for_enabled() -> None:
    assert change({"mmr": True}).mmr.enabled is True
    assert change({"hyde": True}).hyde.enabled is True
    assert change({"mmr": {"enabled": True, "relevance": 0.5}}).mmr.relevance == 0.5
    assert "allowed: a table" in refused({"weights": True})


def test_whole_number_may_be_written_as_a_float_and_null_says_nothing() -> None:
    assert change({"rrf_k": 20.0, "fusion": None, "weights": {"vector": None}}) == Search(rrf_k=20)
    assert type(change({"rrf_k": 20.0}).rrf_k) is int
    assert "found 20.5" in refused({"rrf_k": 20.5})


def test_all_problems_are_named_at_once() -> None:
    message = refused({"rrfk": 3, "limit": 500, "weights": {"vectors": 1, "words": -1}, "mmr": 7, "decay.strength": 1})
    assert message.splitlines() == [
        "settings.rrfk: unknown; did you mean rrf_k?",
        "settings.limit: found 500; allowed: a whole number, 1 to 100",
        "settings.weights.vectors: unknown; did you mean weights.vector?",
        "settings.weights.words: found -1; allowed: a number, 0 to 100",
        "settings.mmr: found 7; allowed: a table, [mmr]",
        'settings."decay.strength": unknown; did you mean decay.strength?',
    ]


def test_one_leg_must_be_left() -> None:
    assert "allowed: one above 0" in refused({"weights": {"words": 0, "trigram": 0, "vector": 0}})
    with pytest.raises(InvalidParams, match="one above 0"):
        lay_over(Search(weights=Weights(0, 0, 1)), {"weights.vector": 0.0})


@pytest.mark.parametrize("key", AT_START)
def test_what_is_read_at_the_start_is_refused_unless_it_stays(key: str) -> None:
    default = value_of(Search(), key)
    assert change(nest(key, default)) == Search()
    message = refused(nest(key, f"{default}x" if isinstance(default, str) else default + 1))
    assert f"settings.{key}" in message
    assert "restart" in message


def test_many_keys_are_refused_without_guessing_what_each_was_meant_to_be() -> None:
    for table in ({f"fusio{n}": 1 for n in range(100_000)}, {"weights": {f"word{n}": 1 for n in range(100_000)}}):
        assert len(refused(table)) < 200


def test_depth_is_survived() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert "nested too deeply" in refused({"fusion": deep})


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
TABLES = st.dictionaries(
    st.sampled_from(["fusion", "weights", "decay", "mmr", "rrf_k", "limit"]) | st.text(),
    ANY | st.dictionaries(st.sampled_from(["words", "vector", "strength", "enabled"]) | st.text(), ANY, max_size=4),
    max_size=5,
)


@given(TABLES)
def test_any_table_is_taken_or_refused_never_worse(table: dict[str, Any]) -> None:
    try:
        laid = change(table)
    except InvalidParams as error:
        assert error.message  # noqa: PT017  either outcome is right
    else:
        assert change(asdict(laid)) == laid


# -- in force --------------------------------------------------------------------------------------------------


def start(folder: Path, text: str | None = None, **environ: str) -> LiveSettings:
    file = folder / "config.toml"
    if text is not None:
        file.write_text(text)
    config = load_config(file if text is not None else None, {"HOME": str(folder), **environ}, folder)
    return LiveSettings(config, folder / ".config/memoryd/config.toml")


def test_origin_is_told_of_every_setting(tmp_path: Path) -> None:
    live = start(tmp_path, "search.limit = 9\n", MEMORYD_SEARCH__RRF_K="20")
    live.change({"fusion": "rrf"})
    described = live.describe()
    assert set(described["origin"]) == set(SEARCH_SETTINGS)
    told = {key: origin for key, origin in described["origin"].items() if origin != "default"}
    assert told == {"limit": "file", "rrf_k": "environment", "fusion": "live"}
    assert described["settings"] == asdict(live.search())
    assert described["settings"]["weights"] == asdict(Weights())
    assert described["changed"] == {"fusion": {"live": "rrf", "configured": "weighted"}}
    assert described["file"] == str(tmp_path / "config.toml")


def test_what_is_described_can_be_set_again(tmp_path: Path) -> None:
    live = start(tmp_path)
    live.change({"mmr": True, "weights": {"words": 3}})
    described = live.describe()
    live.change(described["settings"])
    assert live.describe() == described


def test_changes_add_up_until_they_are_reset(tmp_path: Path) -> None:
    live = start(tmp_path, "[search]\nlimit = 9\n")
    live.change({"weights": {"vector": 0}})
    live.change({"weights": {"trigram": 0}, "limit": 3})
    assert live.search().weights == Weights(trigram=0.0, vector=0.0)
    assert list(live.changes()) == ["limit", "weights.trigram", "weights.vector"]
    with pytest.raises(InvalidParams):  # no leg would be left
        live.change({"weights": {"words": 0}, "limit": 5})
    assert live.search().limit == 3  # all of a change, or nothing
    live.change({"fusion": "rrf"}, reset=True)
    assert live.search() == Search(limit=9, fusion="rrf")
    live.change({}, reset=True)
    assert live.search() == Search(limit=9)
    assert live.changes() == {}


def test_one_query_differs_and_the_next_does_not(tmp_path: Path) -> None:
    live = start(tmp_path)
    live.change({"weights": {"words": 3}})
    assert live.search({"weights": {"vector": 0}}).weights == Weights(words=3.0, vector=0.0)
    assert live.search().weights == Weights(words=3.0)
    assert live.search({}) == live.search(None) == live.search()


def test_changed_back_is_as_configured(tmp_path: Path) -> None:
    live = start(tmp_path)
    live.change({"fusion": "rrf"})
    live.change({"fusion": "weighted"})
    assert live.changes() == {}


def test_reader_never_sees_half_a_change(tmp_path: Path) -> None:
    live = start(tmp_path)
    done = threading.Event()

    def write() -> None:
        for number in range(1, 300):
            live.change({"limit": number % 100 + 1, "rrf_k": number % 100 + 1})
        done.set()

    live.change({"limit": 1, "rrf_k": 1})
    writer = threading.Thread(target=write)
    writer.start()
    looks = 0
    while not done.is_set() or looks == 0:
        search = live.search()
        assert search.limit == search.rrf_k
        looks += 1
    writer.join()


# -- persisted -------------------------------------------------------------------------------------------------


def test_persisted_is_configured_from_then_on(tmp_path: Path) -> None:
    live = start(tmp_path, "# mine\n[search]\nlimit = 9  # enough\n")
    live.change({"adaptive": False})
    live.change({"limit": 4, "weights": {"vector": 0}}, persist=True)
    assert list(live.changes()) == ["adaptive"]  # what was not asked to be written is not
    assert live.describe()["origin"]["weights.vector"] == "file"
    live.change({}, reset=True)
    assert live.search() == Search(limit=4, weights=Weights(vector=0.0))
    text = (tmp_path / "config.toml").read_text()
    assert text == "# mine\n[search]\nlimit = 4  # enough\n\n[search.weights]\nvector = 0.0\n"
    assert load_config(tmp_path / "config.toml", {"HOME": str(tmp_path)}, tmp_path).search == live.search()


def without_a_file(folder: Path) -> LiveSettings:
    return start(folder)


def without_its_file(folder: Path) -> LiveSettings:
    live = start(folder, "")
    (folder / "config.toml").unlink()
    return live


def with_a_broken_file(folder: Path) -> LiveSettings:
    live = start(folder, "")
    (folder / "config.toml").write_text("[search\n")
    return live


def under_an_environment(folder: Path) -> LiveSettings:
    return start(folder, "", MEMORYD_SEARCH__FUSION="weighted")


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        (without_a_file, "without a configuration file"),
        (without_its_file, "no longer there"),
        (with_a_broken_file, "cannot be changed"),
        (under_an_environment, "MEMORYD_SEARCH__FUSION would win"),
    ],
)
def test_what_cannot_be_persisted_changes_nothing(
    tmp_path: Path, begin: Callable[[Path], LiveSettings], told: str
) -> None:
    live = begin(tmp_path)
    with pytest.raises(ConfigInvalid, match=told):
        live.change({"fusion": "rrf"}, persist=True)
    assert live.search() == Search()
    live.change({"fusion": "rrf"})
    assert live.search().fusion == "rrf"


def test_where_a_file_belongs_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        start(tmp_path).change({"fusion": "rrf"}, persist=True)
    assert str(tmp_path / ".config/memoryd/config.toml") in str(caught.value.hint)


def test_defaults_are_the_configurations() -> None:
    assert LiveSettings(Config(), Path("/nonexistent")).search() == Search()
