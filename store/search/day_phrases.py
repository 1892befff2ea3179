"""The days that a query names: "last Tuesday", "in May 2026", "two weeks ago", 上周三, 先月, 지난주.

They are taken loosely, as people name them: a week ago is some day of that week. A word that may be something else
names days only in company: "may" and "March" after "in", or beside a day or a year. Where nothing is certain no days
are named, and dates count as they always do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import cache

from memoryd.store.folding import fold
from memoryd.store.search.day_words import (
    ALONE,
    DAY,
    EAST_DAY,
    EAST_MONTH,
    EAST_NUMBER,
    EAST_UNIT,
    EAST_WEEK,
    EAST_YEAR,
    KOREAN_WEEK,
    MONTH,
    MONTHS,
    NUMBER,
    NUMBERS,
    REACH,
    SEASON,
    SEASONS,
    SIGN,
    TH,
    THIS,
    UNIT,
    UNITS,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
)
from memoryd.store.search.period import Period, Span

_LONGEST = 400  # characters; what is longer was pasted, and its dates are not what is asked for
_FROM_TO = re.compile(r"\s*(?:to|until|till|through|bis|[-–—~]|到|至|から|부터)\s*")
_AND = re.compile(r"\s*(?:and|und)\s*")
_BETWEEN = re.compile(r"\b(?:between|zwischen)\s*$")
_SIGN = re.compile(SIGN)
_YEARS = 10  # back from today: a day or month without a year is that of any of these


def find_period(text: str, today: date) -> Period | None:
    """The days that a query names, of several ways to name them the most exact; None if it names none."""
    if len(text) > _LONGEST:
        return None
    folded = fold(text)
    if folded.isascii() and not _SIGN.search(folded):
        return None
    for pattern, read in _patterns():
        named = [(match, spans) for match in pattern.finditer(folded) if (spans := _read(read, match, today))]
        if named:
            spans = _joined(folded, named) or [span for _, spans in named for span in spans]
            return Period(" · ".join(match[0].strip() for match, _ in named), tuple(dict.fromkeys(spans)))
    return None


def _read(read: Reader, match: re.Match[str], today: date) -> list[Span]:
    try:
        return list(read(match, today))
    except (ValueError, OverflowError):  # the 31st of June, a thousand years ago
        return []


def _joined(text: str, named: Sequence[tuple[re.Match[str], list[Span]]]) -> list[Span]:
    """From one day to another, where just these two are named as the ends of something."""
    match named:
        case [(first, [start]), (last, [end])] if start.first <= end.last:
            between = text[first.end() : last.start()]
            if _FROM_TO.fullmatch(between) or (_AND.fullmatch(between) and _BETWEEN.search(text[: first.start()])):
                return [Span(start.first, end.last)]
    return []


# -- by their date ----------------------------------------------------------------------------------------


def _dated(match: re.Match[str], today: date) -> Iterator[Span]:
    """A day or a month, of a year or of any that is not to come."""
    named = match.groupdict()
    month = MONTHS.get(named["month"]) or int(named["month"])
    if month > 12:
        return
    years = [int(named["year"])] if named.get("year") else range(today.year, today.year - _YEARS, -1)
    for year in years:
        span = Span.of_month(year, month)
        if day := int(named.get("day") or 0):
            if day > span.last.day:  # the 29th of February, in most years
                continue
            span = Span.of_day(span.first.replace(day=day))
        if span.first <= today or named.get("year"):
            yield _reaching(match, span, today)


def _year(match: re.Match[str], today: date) -> Iterator[Span]:
    """Or a quarter of it."""
    year, quarter = int(match["year"]), match.groupdict().get("quarter")
    span = Span.of_year(year)
    if quarter:
        last = 3 * int(quarter)
        span = Span(Span.of_month(year, last - 2).first, Span.of_month(year, last).last)
    yield _reaching(match, span, today)


def _season(match: re.Match[str], today: date) -> Iterator[Span]:
    """Of a year, or the last one that is over."""
    named = match.groupdict().get("year")
    for year in [int(named)] if named else range(today.year, today.year - 3, -1):
        first = date(year, SEASONS[match["season"]], 1)
        last = Span.of_month(year, first.month + 2).last
        if named or last < today:
            yield Span(first, last)
            return


def _reaching(match: re.Match[str], span: Span, today: date) -> Span:
    """``since`` reaches to today, ``before`` to the beginning."""
    reach = match.groupdict().get("reach")
    if reach in ("since", "after", "seit", "nach"):
        return Span(span.first, max(span.last, today))
    if reach in ("before", "vor"):
        return Span(date.min, span.first - timedelta(1))
    return span


# -- by how long ago they were ----------------------------------------------------------------------------


def _ago(match: re.Match[str], today: date) -> Iterator[Span]:
    """The longer ago, the less exactly."""
    unit = _unit(match)
    about, slack = today - timedelta(_number(match) * unit), timedelta(unit // 2)
    yield Span(about - slack, min(today, about + slack))


def _past(match: re.Match[str], today: date) -> Iterator[Span]:
    yield Span(today - timedelta(_number(match) * _unit(match)), today)


def _weekday(match: re.Match[str], today: date) -> Iterator[Span]:
    """The last one before today."""
    yield Span.of_day(today - timedelta((today.weekday() - WEEKDAYS[match["weekday"]]) % 7 or 7))


def _weekend(_: re.Match[str], today: date) -> Iterator[Span]:
    """The last one that has begun, and not today."""
    saturday = today - timedelta((today.weekday() - 5) % 7 or 7)
    yield Span(saturday, saturday + timedelta(1))


def _day(ago: int) -> Reader:
    return lambda _, today: [Span.of_day(today - timedelta(ago))]


def _week(ago: int) -> Reader:
    def read(match: re.Match[str], today: date) -> Iterator[Span]:
        monday = today - timedelta(today.weekday() + 7 * ago)
        weekday = match.groupdict().get("weekday")
        yield Span.of_day(monday + timedelta(WEEKDAYS[weekday])) if weekday else Span(monday, monday + timedelta(6))

    return read


def _month_of(ago: int) -> Reader:
    return lambda _, today: [Span.of_month(today.year, today.month - ago)]


def _year_of(ago: int) -> Reader:
    return lambda _, today: [Span.of_year(today.year - ago)]


# -- numbers ----------------------------------------------------------------------------------------------


def _number(match: re.Match[str]) -> int:
    named = match.groupdict().get("number")  # none in "the last week": one
    return NUMBERS.get(named) or int(named) if named else 1


def _unit(match: re.Match[str]) -> int:
    """In days."""
    return next(days for name, days in UNITS.items() if match[name])


Reader = Callable[[re.Match[str], date], Iterable[Span]]

# The most exact first: of "last Friday, 23 January 2022" the date counts.
_PHRASES: tuple[tuple[str, Reader], ...] = (
    (rf"{REACH}?{ALONE}{YEAR}([-/])(?P<month>\d\d?)\3{DAY}(?![\d.-])", _dated),
    (rf"{REACH}?{ALONE}{DAY}{TH}(?: of)? {MONTH},? {YEAR}\b", _dated),
    (rf"{REACH}?{ALONE}{MONTH} {DAY}{TH},? {YEAR}\b", _dated),
    (rf"{EAST_YEAR}\s?{EAST_MONTH}{EAST_DAY}", _dated),
    (rf"{REACH}?{ALONE}{MONTH},? (?:of )?{YEAR}\b", _dated),
    (rf"{REACH}?{ALONE}{YEAR}-(?P<month>\d\d)(?![\d.-])", _dated),
    (rf"{EAST_YEAR}\s?{EAST_MONTH}", _dated),
    (rf"{REACH}?{ALONE}q(?P<quarter>[1-4])[ /-]?{YEAR}\b", _year),
    (rf"\b{SEASON} (?:of )?{YEAR}\b", _season),
    (rf"{REACH}?{ALONE}{DAY}{TH}(?: of)? {MONTH}(?! ?\d)", _dated),
    (rf"{REACH}?{ALONE}{MONTH} {DAY}(?:st|nd|rd|th)?\b(?![\d.:])", _dated),
    (rf"(?<!\d){EAST_MONTH}{EAST_DAY}", _dated),
    (r"\bday before yesterday\b|\bvorgestern\b|(?<![目之以提])前天|一昨日|おととい|그저께|그제", _day(2)),
    (r"\byesterday\b|\blast night\b|\bgestern\b|昨[天日晚夜晩]|어제|어젯밤", _day(1)),
    (r"\btoday\b|\bthis (?:morning|afternoon|evening)\b|\btonight\b|\bheute\b|今[天日]|오늘", _day(0)),
    (rf"\b{NUMBER} {UNIT} (?:ago|back|earlier)\b", _ago),
    (rf"\bvor {NUMBER} {UNIT}", _ago),
    (rf"{EAST_NUMBER}{EAST_UNIT}\s?(?:之?前|전)", _ago),
    (rf"\b(?:past|last|previous|letzten) {NUMBER} {UNIT}", _past),
    (rf"\b(?:in|over|within|during) the (?:past|last) {UNIT}", _past),
    (rf"上{EAST_WEEK}(?P<weekday>[一二三四五六日天])", _week(1)),
    (r"先週の?(?P<weekday>[月火水木金土日])曜", _week(1)),
    (r"지난\s?주\s?(?P<weekday>[월화수목금토일])요일", _week(1)),
    (rf"\b(?:last|on|this past|letzten|am) {WEEKDAY}", _weekday),
    (r"(?<![下每毎一两兩几幾\d])(?:星期|[周週])(?P<weekday>[一二三四五六日天])(?![次天年])", _weekday),
    (r"(?<!来週)(?<!来週の)(?<!毎週)(?<!次の)(?P<weekday>[月火水木金土日])曜", _weekday),
    (r"(?<!다음 주 )(?<!다음주 )(?<!매주 )(?P<weekday>[월화수목금토일])요일", _weekday),
    (r"\b(?:last|this past|over the) weekend\b|\bletztes wochenende\b|上[个個]?周末|先週末|지난\s?주말", _weekend),
    (rf"\blast week\b|\bletzte[nr]? woche\b|(?<!以)上{EAST_WEEK}|先週|지난\s?{KOREAN_WEEK}", _week(1)),
    (rf"\bthis week\b|\bdieser? woche\b|(?:{THIS}|[这這]){EAST_WEEK}|今週|이번\s?{KOREAN_WEEK}", _week(0)),
    (r"\blast month\b|\bletzte[nr]? monat\b|(?<!以)上[个個]?月|先月|지난\s?달(?!리)", _month_of(1)),
    (rf"\bthis month\b|\bdiese[nm] monat\b|{THIS}月|[这這][个個]月|今月|이번\s?달(?!리)", _month_of(0)),
    (rf"\b(?:last|this past) {SEASON}\b", _season),
    (r"\blast year\b|\bletzte[sn] jahr\b|去年|昨年|작년|지난\s?해", _year_of(1)),
    (r"\bthis year\b|\bdiese[sm] jahr\b|今年|올해", _year_of(0)),
    (rf"(?:{REACH}|\b(?:in|from|during|of|by|until|last|early|late|mid|im|letzten)[ -]){MONTH}(?! ?\d)", _dated),
    (rf"(?<!\d){EAST_MONTH}(?!\s?\d|[日号號刊일])", _dated),
    (rf"(?:{REACH}|\b(?:in|during|of|year|im jahr) ){YEAR}\b(?![-/.\d])", _year),
    (EAST_YEAR, _year),
)


@cache
def _patterns() -> list[tuple[re.Pattern[str], Reader]]:
    """Made for the first query that may name days: that takes as long as several searches, and most name none."""
    return [(re.compile(pattern), read) for pattern, read in _PHRASES]
