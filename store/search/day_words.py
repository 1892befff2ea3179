"""How days are named: the words, by what they mean, and the pieces of regular expressions that find them.

Text is folded: lower case, digits of full width made plain ones. English, German, Chinese, Japanese and Korean; a word
of another language is a word here.
"""

from __future__ import annotations

from collections.abc import Iterable

_MONTHS = (
    "january jan januar",
    "february feb februar",
    "march mar märz",
    "april apr",
    "may mai",
    "june jun juni",
    "july jul juli",
    "august aug",
    "september sep sept",
    "october oct oktober okt",
    "november nov",
    "december dec dezember dez",
)
_WEEKDAYS = (
    "monday montag 一 月 월",
    "tuesday dienstag 二 火 화",
    "wednesday mittwoch 三 水 수",
    "thursday donnerstag 四 木 목",
    "friday freitag 五 金 금",
    "saturday samstag 六 土 토",
    "sunday sonntag 日 天 일",
)
_NUMBERS = (
    "a an one ein einem einer 一 한",
    "two couple zwei 二 两 兩 두",
    "three few drei 三 세",
    "four vier 四 네",
    "five fünf 五",
    "six sechs 六",
    "seven sieben 七",
    "eight acht 八",
    "nine neun 九",
    "ten zehn 十",
    "eleven elf",
    "twelve zwölf",
)


def _numbered(names: Iterable[str], first: int) -> dict[str, int]:
    return {name: number for number, several in enumerate(names, first) for name in several.split()}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def _spaced(words: Iterable[str]) -> list[str]:
    """Those of scripts that put spaces between words."""
    return [word for word in words if word < "\u3000"]


MONTHS = _numbered(_MONTHS, 1)
WEEKDAYS = _numbered(_WEEKDAYS, 0)
NUMBERS = _numbered(_NUMBERS, 1)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # and the first month of each
UNITS = {"days": 1, "weeks": 7, "months": 30, "years": 365}

ALONE = r"(?<![0-9a-z_.-])"  # not the end of a number or a name, as "\b"; but it may follow a Chinese letter
YEAR = r"(?P<year>(?:19|20)\d\d)"
MONTH = rf"(?P<month>{_any(MONTHS)})\b\.?"
DAY = r"(?P<day>\d{1,2})"
TH = r"(?:st|nd|rd|th|\.)?"
REACH = r"(?:\b(?P<reach>since|after|before|seit|nach|vor) )"
SEASON = rf"(?P<season>{_any(SEASONS)})"
WEEKDAY = rf"(?P<weekday>{_any(_spaced(WEEKDAYS))})\b(?! (?:morning|afternoon|evening|night)s)"
NUMBER = rf"(?P<number>\d{{1,3}}|{_any(_spaced(NUMBERS))})(?: of)?"
UNIT = (
    r"(?:(?P<days>days?|tage?n?)|(?P<weeks>weeks?|wochen?)"
    r"|(?P<months>months?|monate?n?)|(?P<years>years?|jahre?n?))\b"
)

# What no phrase of ASCII goes without: most queries have none of it, and are not looked through for each.
SIGN = (
    r"\d|day|night|morning|afternoon|evening|week|month|year|gestern|heute|tag|woche|monat|jahr"
    rf"|\b(?:{_any(_spaced((*MONTHS, *WEEKDAYS, *SEASONS)))})\b"
)

# The same of scripts without spaces, and of Korean, which glues its particles.
EAST_MONTH = r"(?P<month>1[0-2]|0?[1-9])\s?[月월]"
EAST_DAY = r"\s?(?P<day>\d{1,2})\s?[日号號일]"
EAST_YEAR = rf"{YEAR}\s?[年년](?!代|대)"
EAST_NUMBER = r"(?<!\d)(?P<number>\d{1,3}|[一二两兩三四五六七八九十한두세네])"
EAST_UNIT = (
    r"\s?(?:(?P<days>天|日|일)|(?P<weeks>[个個]?星期|[周週]|週間|주일?)"
    r"|(?P<months>[个個ヶか]月|カ月|개월|달)|(?P<years>年|년))"
)
EAST_WEEK = r"(?:[个個]?(?:星期|礼拜)|[个個]?[周週](?!期|年))"
KOREAN_WEEK = r"주(?![제문소식인])"  # not the beginning of "subject", "order", "address"
THIS = r"(?<![样樣基日根])本"  # not the end of "sample", "basically", "Japan"
