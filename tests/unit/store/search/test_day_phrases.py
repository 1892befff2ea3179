"""The days that a query names."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.store.search.day_phrases import find_period
from memoryd.store.search.period import Period, Span

TODAY = date(2026, 11, 18)  # a Wednesday


def days(text: str) -> list[str]:
    """What is named, a day or two joined by dots, the latest first."""
    period = find_period(text, TODAY)
    spans = period.spans if period else ()
    return [str(first) if first == last else f"{first}..{last}" for first, last in spans]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("what did we decide on 2026-11-15", "2026-11-15"),
        ("2026/3/5 standup", "2026-03-05"),
        ("会议2026-11-15", "2026-11-15"),
        ("notes of 15 November 2026 about goats", "2026-11-15"),
        ("the 1st of May, 2025", "2025-05-01"),
        ("November 15th, 2026", "2026-11-15"),
        ("am 3. März 2026", "2026-03-03"),
        ("2026年11月15日的会议", "2026-11-15"),
        ("2026년 11월 15일 회의", "2026-11-15"),
        ("deploys in May 2026", "2026-05-01..2026-05-31"),
        ("deploys of February, 2024", "2024-02-01..2024-02-29"),
        ("deploys 2026-02", "2026-02-01..2026-02-28"),
        ("2026年2月の定例", "2026-02-01..2026-02-28"),
        ("revenue in Q3 2025", "2025-07-01..2025-09-30"),
        ("the summer of 2021", "2021-06-01..2021-08-31"),
        ("winter 2024", "2024-12-01..2025-02-28"),
        ("what we did in 2025", "2025-01-01..2025-12-31"),
        ("2025年的计划", "2025-01-01..2025-12-31"),
        ("what changed since May 2026", "2026-05-01..2026-11-18"),
        ("how it was before 2026-03-01", "0001-01-01..2026-02-28"),
        ("seit März 2026", "2026-03-01..2026-11-18"),
    ],
)
def test_days_are_named_by_their_date(query: str, named: str) -> None:
    assert days(query) == [named]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("what did I do today", "2026-11-18"),
        ("yesterday's deploy", "2026-11-17"),
        ("what broke last night", "2026-11-17"),
        ("the day before yesterday", "2026-11-16"),
        ("three days ago", "2026-11-15"),
        ("two weeks ago", "2026-11-01..2026-11-07"),
        ("a month ago", "2026-10-04..2026-11-03"),
        ("in the past 3 weeks", "2026-10-28..2026-11-18"),
        ("in the last year", "2025-11-18..2026-11-18"),
        ("the last 10 days", "2026-11-08..2026-11-18"),
        ("last week", "2026-11-09..2026-11-15"),
        ("this week", "2026-11-16..2026-11-22"),
        ("last month", "2026-10-01..2026-10-31"),
        ("last year", "2025-01-01..2025-12-31"),
        ("last Tuesday", "2026-11-17"),
        ("what was said on Wednesday", "2026-11-11"),
        ("over the weekend", "2026-11-14..2026-11-15"),
        ("last summer", "2026-06-01..2026-08-31"),
        ("last winter", "2025-12-01..2026-02-28"),
        ("was war gestern", "2026-11-17"),
        ("vor drei Wochen", "2026-10-25..2026-10-31"),
        ("letzte Woche", "2026-11-09..2026-11-15"),
        ("昨天说了什么", "2026-11-17"),
        ("三天前", "2026-11-15"),
        ("上周三开会说了什么", "2026-11-11"),
        ("上个月在杭州", "2026-10-01..2026-10-31"),
        ("上个星期的会", "2026-11-09..2026-11-15"),
        ("本周的计划", "2026-11-16..2026-11-22"),
        ("前天的会议", "2026-11-16"),
        ("去年", "2025-01-01..2025-12-31"),
        ("昨日の会議", "2026-11-17"),
        ("先週の月曜日", "2026-11-09"),
        ("先月", "2026-10-01..2026-10-31"),
        ("어제 뭐 했지", "2026-11-17"),
        ("지난주 금요일 회의", "2026-11-13"),
        ("3일 전", "2026-11-15"),
        ("이번 주 계획", "2026-11-16..2026-11-22"),
        ("지난주에 한 일", "2026-11-09..2026-11-15"),
        ("지난달", "2026-10-01..2026-10-31"),
    ],
)
def test_days_are_named_by_how_long_ago_they_were(query: str, named: str) -> None:
    assert days(query) == [named]


def test_month_without_a_year_is_that_of_any_year_that_has_come() -> None:
    assert days("what we planted in May")[:2] == ["2026-05-01..2026-05-31", "2025-05-01..2025-05-31"]
    assert days("what we planted in December")[0] == "2025-12-01..2025-12-31"
    assert days("11月15日")[:2] == ["2026-11-15", "2025-11-15"]
    assert days("on July 22")[0] == "2026-07-22"
    assert days("February 29") == ["2024-02-29", "2020-02-29"]


def test_of_several_ways_to_name_days_the_most_exact_counts() -> None:
    assert days("what did she finish last Friday on 23 January, 2022") == ["2022-01-23"]
    assert days("the first half of September 2022") == ["2022-09-01..2022-09-30"]


def test_several_days_may_be_named() -> None:
    assert days("2026-11-01 and 2026-11-05") == ["2026-11-01", "2026-11-05"]
    assert days("in May 2026 or in July 2026") == ["2026-05-01..2026-05-31", "2026-07-01..2026-07-31"]


@pytest.mark.parametrize(
    "query",
    [
        "between 2026-11-01 and 2026-11-05",
        "from 2026-11-01 to 2026-11-05",
        "1 November 2026 – 5 November 2026",
        "2026年11月1日到2026年11月5日",
    ],
)
def test_two_days_may_be_the_ends_of_something(query: str) -> None:
    assert days(query) == ["2026-11-01..2026-11-05"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "may I ask how the march went",
        "how long ago was it",
        "version 2026.4.10 of the tool",
        "CVE-2026-1115",
        "port 2022",
        "5/11/2026",  # of May, or of November
        "2025-13-05",
        "2025-12-45",
        "what time do I get up on Saturday mornings",
        "every Tuesday",
        "next Tuesday",
        "this may be the cause",
        "一周三次",
        "目前天气怎么样",
        "样本周期的长度",
        "日本月刊",
        "以上周期",
        "이번 주제",
        "지난 주문 내역",
        "下周三的会议",
        "来週の月曜",
        "1970年代の音楽",
        "error 404 in the log",
        "in the second year",
    ],
)
def test_what_is_not_certainly_a_day_is_none(query: str) -> None:
    assert find_period(query, TODAY) is None


def test_page_that_was_pasted_names_no_days() -> None:
    assert find_period("what happened on 2026-11-15? " + "words " * 100, TODAY) is None


def test_day_is_within_before_or_after() -> None:
    period = Period("", (Span(date(2026, 5, 1), date(2026, 5, 31)), Span(date(2025, 5, 1), date(2025, 5, 31))))
    assert [period.days_away(date(2026, 5, day)) for day in (1, 15, 31)] == [0, 0, 0]
    assert period.days_away(date(2026, 6, 3)) == 3
    assert period.days_away(date(2026, 4, 28)) == -3
    assert period.days_away(date(2025, 6, 2)) == 2  # of the nearer one


@given(st.text(alphabet="0123456789-/. 年月日天周三上先週年월일전년 ", max_size=30), st.dates())
def test_any_text_on_any_day_names_days_in_order_or_none(text: str, today: date) -> None:
    check(find_period(text, today))


WORDS = (
    *("last", "this", "past", "on", "in", "may", "june", "friday", "summer", "q3", "since", "before", "between", "and"),
    *("3", "31", "999", "2026", "2024-02-30", "1900-01-01", "weeks", "years", "months", "ago", "年", "月", "前"),
)


@given(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), st.dates())
def test_any_words_on_any_day_name_days_in_order_or_none(text: str, today: date) -> None:
    check(find_period(text, today))


def check(period: Period | None) -> None:
    for first, last in period.spans if period else ():
        assert first <= last
        assert period
        assert period.days_away(first) == period.days_away(last) == 0
        if first > date.min:
            assert period.days_away(first - timedelta(1)) in (-1, 0, 1)
