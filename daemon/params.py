"""What a method takes: declared once as a frozen dataclass, checked here, all problems at once.

Fields may be ``str``, ``int``, ``float``, ``bool``, ``date``, ``Mapping`` (an object, for the method to check), each
``| None``, ``str | int | float`` (a request's id), or ``tuple[str, ...]``, which accepts one string or a list of them.
``null`` for a parameter that has a default means the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import date
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from memoryd.daemon.protocol import named_params
from memoryd.store.errors import InvalidParams

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")

_SHOWN_CHARS = 40  # of a name that the client made up
_SHOWN_NAMES = 10
_KINDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a field's type does not say."""

    doc: str
    name: str | None = None  # on the wire, where Python's name cannot be the same
    minimum: float | None = None
    maximum: float | None = None
    blank: bool = True  # may the string be empty or only spaces?
    choices: tuple[str, ...] = ()  # the strings that it may be; none: any
    longest: int | None = None  # characters of a string
    most: int | None = None  # strings in a list


def rule(
    doc: str,
    *,
    name: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    blank: bool = True,
    choices: tuple[str, ...] = (),
    longest: int | None = None,
    most: int | None = None,
) -> Mapping[str, Rule]:
    """The metadata of a field."""
    return {"rule": Rule(doc, name, minimum, maximum, blank, choices, longest, most)}


def parse_params(cls: type[T], params: object) -> T:
    """The request, or ``InvalidParams`` that names every unknown, missing and wrong parameter."""
    given = named_params(params)
    declared = declared_params(cls)
    problems = _describe_unknown(given, declared)
    values: dict[str, Any] = {}
    for name, (field, kind) in declared.items():
        value = given.get(name)
        if value is None:
            if field.default is MISSING:
                problems.append(f"{name} is missing")
            continue
        try:
            values[field.name] = _convert(value, kind, field.metadata["rule"])
        except ValueError as exc:
            problems.append(f"{name} {exc}")
    if problems:
        known = ", ".join(declared) or "none"
        raise InvalidParams("; ".join(problems) + ".", hint=f"The parameters are: {known}.")
    return cls(**values)


@cache
def declared_params(cls: type[DataclassInstance]) -> dict[str, tuple[Field[Any], Any]]:
    """Name on the wire → the field and its type without ``None``."""
    hints = get_type_hints(cls)
    declared = {}
    for field in fields(cls):
        kind = hints[field.name]
        if NoneType in get_args(kind):
            (kind,) = (option for option in get_args(kind) if option is not NoneType)
        declared[field.metadata["rule"].name or field.name] = (field, kind)
    return declared


def _describe_unknown(given: Mapping[str, Any], declared: Mapping[str, object]) -> list[str]:
    unknown = [name for name in given if name not in declared]
    if not unknown:
        return []
    from difflib import get_close_matches  # only a mistake pays for it

    problems = []
    for name in unknown[:_SHOWN_NAMES]:
        shown = name if len(name) <= _SHOWN_CHARS else name[:_SHOWN_CHARS] + "…"
        close = get_close_matches(shown, declared, n=1)
        problems.append(f"{shown!r} is unknown" + (f" (did you mean {close[0]!r}?)" if close else ""))
    if len(unknown) > _SHOWN_NAMES:
        problems.append(f"{len(unknown) - _SHOWN_NAMES} more are unknown")
    return problems


def _convert(value: object, kind: Any, rule: Rule) -> object:
    """The value as its field holds it; ``ValueError`` completes the sentence "<name> …"."""
    if kind is str:
        return _check_text(value, rule)
    if kind is bool:
        if isinstance(value, bool):
            return value
    elif kind is date:
        return _check_day(value)
    elif isinstance(kind, UnionType):
        if isinstance(value, get_args(kind)) and not isinstance(value, bool):
            return value
        raise ValueError("must be a string or a number")
    elif get_origin(kind) is Mapping:
        if isinstance(value, Mapping):
            return value
        raise ValueError("must be an object")
    elif kind is int or kind is float:
        number = _to_number(value, kind)
        if number is not None:
            return _check_range(number, rule)
    else:
        items = value if isinstance(value, list | tuple) else (value,)
        if rule.most is not None and len(items) > rule.most:
            raise ValueError(f"must be at most {rule.most:,} strings")
        if all(isinstance(item, str) for item in items):
            return tuple(_check_text(item, rule) for item in items)
        raise ValueError("must be a string or a list of strings")
    raise ValueError(f"must be {_KINDS[kind]}")


def _check_day(value: object) -> date:
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("must be a day such as 2026-11-15") from None


def _to_number(value: object, kind: type) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind is int:
        return int(value) if value == value // 1 else None  # 5.0 is a whole number in JSON
    try:
        return float(value)
    except OverflowError:
        return None


def _check_range(number: float, rule: Rule) -> float:
    low = -math.inf if rule.minimum is None else rule.minimum
    high = math.inf if rule.maximum is None else rule.maximum
    if low <= number <= high:
        return number
    if rule.minimum is None:
        raise ValueError(f"must be at most {high:.15g}")
    if rule.maximum is None:
        raise ValueError(f"must be at least {low:.15g}")
    raise ValueError(f"must be {low:.15g} to {high:.15g}")


def _check_text(value: object, rule: Rule) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004  one kind of exception for all that is wrong
    if rule.longest is not None and len(value) > rule.longest:
        raise ValueError(f"must be at most {rule.longest:,} characters long")
    if not rule.blank and not value.strip():
        raise ValueError("must not be empty")
    if rule.choices and value not in rule.choices:
        raise ValueError(f"must be {' or '.join(rule.choices)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half a surrogate pair, which is not text") from None
    return value
