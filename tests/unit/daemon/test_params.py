"""Params by name, checked all at once."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.params import parse_params
from memoryd.daemon.requests import (
    GetRequest,
    IndexRequest,
    PingRequest,
    SearchRequest,
    SettingsGetRequest,
    SettingsSetRequest,
    StatusRequest,
)
from memoryd.store.errors import InvalidParams


def problems(cls, params):
    with pytest.raises(InvalidParams) as caught:
        parse_params(cls, params)
    return caught.value


def test_query_alone_gets_every_default():
    assert parse_params(SearchRequest, {"query": "tea"}) == SearchRequest("tea")


def test_every_param_of_search_is_taken():
    params = {
        "query": "tea",
        "limit": 5,
        "min_score": 0.5,
        "source": "memory",
        "path": ["a/*", "b"],
        "workspace": ["w"],
        "explain": True,
    }
    assert parse_params(SearchRequest, params) == SearchRequest("tea", 5, 0.5, ("memory",), ("a/*", "b"), ("w",), True)


def test_all_problems_are_named_at_once():
    error = problems(SearchRequest, {"limti": 3, "limit": 500, "explain": "yes", "path": [1], "zzz": 0})
    assert error.message == (
        "'limti' is unknown (did you mean 'limit'?); 'zzz' is unknown; query is missing; "
        "limit must be 1 to 100; path must be a string or a list of strings; explain must be true or false."
    )
    assert error.hint is not None
    assert error.hint.startswith("The parameters are: query, limit, min_score, source, path, workspace, explain, ")


def test_what_may_be_seen_is_taken():
    params = {
        "query": "q",
        "scope": "User: ana",
        "exclude": "MEMORY.md",
        "after": "2026-11-01",
        "before": "2026-11-15",
        "as_of": "20261116",
        "include_superseded": True,
    }
    request = parse_params(SearchRequest, params)
    assert (request.scope, request.exclude, request.include_superseded) == ("user:ana", ("MEMORY.md",), True)
    assert (request.after, request.before, request.as_of) == (date(2026, 11, 1), date(2026, 11, 15), date(2026, 11, 16))


@pytest.mark.parametrize("value", ["", "yesterday", "2026-02-30", "2026-11-15T10:00", 20261115, True, ["2026-11-15"]])
@pytest.mark.parametrize("name", ["after", "before", "as_of"])
def test_what_is_no_day_is_refused(name, value):
    error = problems(SearchRequest, {"query": "q", name: value})
    assert error.message == f"{name} must be a day such as 2026-11-15."


@pytest.mark.parametrize("scope", ["bob", "team:x", "user:", "unknown", "user:*"])
def test_what_is_no_scope_is_refused_with_what_is_one(scope):
    assert "user:<id>" in problems(SearchRequest, {"query": "q", "scope": scope}).hint


def test_days_that_leave_nothing_are_refused():
    assert "after" in problems(SearchRequest, {"query": "q", "after": "2026-11-02", "before": "2026-11-01"}).message


@pytest.mark.parametrize("value", [True, "5", 5.5, [5], {}, 0, 101, 10**400, -(10**400), 1e300])
def test_wrong_limit_is_refused(value):
    assert problems(SearchRequest, {"query": "q", "limit": value}).message.startswith("limit must be")


@pytest.mark.parametrize("value", [True, "0.5", [], -0.1, 1.1, 10**400])
def test_wrong_min_score_is_refused(value):
    assert problems(SearchRequest, {"query": "q", "min_score": value}).message.startswith("min_score must be")


@pytest.mark.parametrize("query", ["", "  ", 5, ["q"], "half \ud800"])
def test_wrong_query_is_refused(query):
    assert problems(SearchRequest, {"query": query}).message.startswith("query ")


def test_whole_number_may_be_written_as_a_float():
    limit = parse_params(SearchRequest, {"query": "q", "limit": 5.0}).limit
    assert (limit, type(limit)) == (5, int)


def test_null_means_the_default_and_a_required_param_must_not_be_null():
    params = {"query": "q", "limit": None, "source": None, "explain": None}
    assert parse_params(SearchRequest, params) == SearchRequest("q")
    assert problems(SearchRequest, {"query": None}).message == "query is missing."


def test_params_by_position_are_refused_with_the_remedy():
    assert "by name" in problems(SearchRequest, ["tea"]).message
    assert "object" in problems(SearchRequest, ["tea"]).hint


def test_settings_are_an_object_and_nothing_else():
    assert parse_params(SearchRequest, {"query": "q", "settings": {"fusion": "rrf"}}).settings == {"fusion": "rrf"}
    assert parse_params(SearchRequest, {"query": "q", "settings": {}}).settings == {}
    for wrong in ("fusion=rrf", ["fusion"], True, 3):
        assert problems(SearchRequest, {"query": "q", "settings": wrong}).message == "settings must be an object."


@pytest.mark.parametrize("nothing", [{}, [], None])
@pytest.mark.parametrize("cls", [StatusRequest, PingRequest, IndexRequest, SettingsGetRequest])
def test_methods_without_required_params_take_nothing(cls, nothing):
    assert parse_params(cls, nothing) == cls()


def test_long_unknown_names_are_cut_and_many_are_counted():
    message = problems(PingRequest, {"x" * 10_000 + str(n): n for n in range(50)}).message
    assert len(message) < 1000
    assert "40 more are unknown" in message


def test_index_takes_paths():
    params = {"force": True, "path": "memory", "wait": False}
    assert parse_params(IndexRequest, params) == IndexRequest(True, ("memory",), (), False)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"path": "a.md"}, GetRequest("a.md")),
        ({"path": "a.md", "from": 2, "to": 3}, GetRequest("a.md", 2, 3)),
        ({"path": "a.md", "to": 3, "workspace": "w"}, GetRequest("a.md", None, 3, "w")),
        ({"path": "a.md:7"}, GetRequest("a.md", 7)),
        ({"path": "a.md:7-"}, GetRequest("a.md", 7)),
        ({"path": "a.md:7-9"}, GetRequest("a.md", 7, 9)),
        ({"path": "a:b.md"}, GetRequest("a:b.md")),
        ({"path": "10:30.md:1-1"}, GetRequest("10:30.md", 1, 1)),
        ({"path": "a.md#L7-L9"}, GetRequest("a.md", 7, 9)),
        ({"path": "a.md#L7"}, GetRequest("a.md", 7)),
        ({"path": "a.md#L7-9"}, GetRequest("a.md", 7, 9)),
        ({"path": "a#L1.md"}, GetRequest("a#L1.md")),
        ({"path": "c#L2.md#L3-L4"}, GetRequest("c#L2.md", 3, 4)),
    ],
)
def test_get_names_lines_apart_or_in_the_path(params, expected):
    request = parse_params(GetRequest, params)
    assert request == expected


@pytest.mark.parametrize(
    "params",
    [
        {"path": "a.md:1-2", "from": 1},
        {"path": "a.md:9-2"},
        {"path": "a.md", "from": 9, "to": 2},
        {"path": "a.md:0"},
        {"path": "a.md", "from": 0},
        {"path": "a.md", "to": 10**400},
        {"path": ""},
        {},
    ],
)
def test_get_refuses_lines_that_make_no_sense(params):
    problems(GetRequest, params)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = (
    st.sampled_from(
        ["query", "limit", "min_score", "source", "path", "from", "to", "force", "scope", "as_of", "settings", "reset"]
    )
    | st.text()
)


@given(
    st.sampled_from([SearchRequest, GetRequest, IndexRequest, SettingsSetRequest]), st.dictionaries(NAMES, ANY) | ANY
)
def test_any_params_are_taken_or_refused_never_worse(cls, params):
    try:
        parse_params(cls, params)
    except InvalidParams as error:
        assert error.message  # noqa: PT017  either outcome is right


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"query": "x" * 20_001}, "query must be at most 20,000 characters long"),
        ({"query": "x", "path": ["a"] * 101}, "path must be at most 100 strings"),
        ({"query": "x", "path": "*" * 501}, "path must be at most 500 characters long"),
        ({"query": "x", "exclude": ["a"] * 1001}, "exclude must be at most 1,000 strings"),
    ],
)
def test_what_would_keep_a_thread_busy_for_long_is_refused(params, told):
    with pytest.raises(InvalidParams, match=told):
        parse_params(SearchRequest, params)
