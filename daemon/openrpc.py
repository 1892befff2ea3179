"""Every method and notification as an OpenRPC document, from the code: ``python -m memoryd.daemon.openrpc``.

A method's name says which types describe it: ``settings.get`` takes ``SettingsGetRequest`` (requests.py) and answers
``SettingsGetResult`` (results.py). One without a result type is described as answering an object.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from datetime import date
from importlib.metadata import version
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from memoryd.daemon import notifications, requests, results
from memoryd.daemon.params import Rule, declared_params
from memoryd.daemon.protocol import ERROR_NUMBERS, KINDS
from memoryd.store.errors import all_errors

Schema = dict[str, Any]

_PLAIN: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
    date: {"type": "string", "format": "date"},
}


def describe(methods: Iterable[str]) -> Schema:
    """The document. It has no part that depends on the machine or the memory."""
    parts: dict[str, Schema] = {}
    described = [_method(name, parts) for name in methods]
    notifications = [_notification(kind, parts) for kind in (*KINDS, "dropped")]
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "memoryd",
            "version": version("memoryd"),
            "description": "JSON-RPC 2.0 on memoryd's Unix socket; docs/protocol.md has framing, events and limits.",
            "license": {"name": "MIT"},
        },
        "methods": described,
        "components": {"schemas": dict(sorted(parts.items())), "errors": _errors()},
        "x-notifications": notifications,
    }


def _method(name: str, parts: dict[str, Schema]) -> Schema:
    takes = request_type(name)
    answers = getattr(results, f"{_type_name(name)}Result", dict[str, Any])
    declared = declared_params(takes) if takes else {}
    return {
        "name": name,
        "summary": " ".join(((takes and takes.__doc__) or "").split()),
        "paramStructure": "by-name",
        "params": [
            _param(wire_name, field.default is MISSING, kind, field.metadata["rule"])
            for wire_name, (field, kind) in declared.items()
        ],
        "result": {"name": "result", "schema": schema_of(answers, parts)},
    }


def _notification(kind: str, parts: dict[str, Schema]) -> Schema:
    says = getattr(notifications, f"{_type_name(kind)}Event")
    return {
        "name": f"events.{kind}",
        "summary": " ".join((says.__doc__ or "").split()),
        "params": schema_of(says, parts),
    }


def request_type(name: str) -> Any:
    """The dataclass of what a method takes; None: it is not declared."""
    return getattr(requests, f"{_type_name(name)}Request", None)


def _type_name(name: str) -> str:
    """``settings.get`` → SettingsGet; ``$/cancelRequest`` → Cancel."""
    words = re.split(r"[._]", name.removeprefix("$/").removesuffix("Request"))
    return "".join(word[:1].upper() + word[1:] for word in words)


def _param(name: str, required: bool, kind: Any, rule: Rule) -> Schema:
    schema = _param_schema(kind, rule)
    if not required:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return {"name": name, "description": rule.doc, "required": required, "schema": schema}


def _param_schema(kind: Any, rule: Rule) -> Schema:
    text: Schema = {"type": "string"}
    if not rule.blank:
        text["pattern"] = r"\S"
    if rule.longest is not None:
        text["maxLength"] = rule.longest
    if rule.choices:
        text["enum"] = list(rule.choices)
    if kind is str:
        return text
    if get_origin(kind) is tuple:
        several: Schema = {"type": "array", "items": text}
        if rule.most is not None:
            several["maxItems"] = rule.most
        return {"anyOf": [text, several]}
    if get_origin(kind) is Mapping:
        return {"type": "object"}
    schema = schema_of(kind, {})
    if rule.minimum is not None:
        schema["minimum"] = rule.minimum
    if rule.maximum is not None:
        schema["maximum"] = rule.maximum
    return schema


def schema_of(kind: Any, parts: dict[str, Schema]) -> Schema:
    """The JSON Schema of a type; typed dictionaries go into ``parts`` and are referred to."""
    if kind is None or kind in _PLAIN:
        return dict(_PLAIN[NoneType if kind is None else kind])
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**schema_of(args[0], parts), "description": args[1]}
    if origin is NotRequired:
        return schema_of(args[0], parts)
    if origin is Literal:
        return {"enum": list(args)}
    if origin is list:
        return {"type": "array", "items": schema_of(args[0], parts)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(args[1], parts)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(option, parts) for option in args]}
    if is_typeddict(kind):
        if kind.__name__ not in parts:
            parts[kind.__name__] = {}  # for a type that holds itself
            parts[kind.__name__] = _object(kind, parts)
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    raise TypeError(f"{kind!r} cannot be described")


def _object(kind: Any, parts: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    schema: Schema = {"type": "object"}
    if kind.__doc__:
        schema["description"] = " ".join(kind.__doc__.split())
    schema["properties"] = {name: schema_of(hint, parts) for name, hint in hints.items()}
    schema["required"] = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]
    return schema


def _errors() -> dict[str, Schema]:
    known = {kind.code: kind for kind in all_errors()}
    described = {}
    for code, number in sorted(ERROR_NUMBERS.items()):
        kind = known.get(code)
        meaning = (kind.__doc__ or "").strip().splitlines()[0] if kind else code.replace("_", " ").capitalize() + "."
        data = {"code": code, "hint": None, "retryable": kind.retryable if kind else False}
        described[code] = {"code": number, "message": meaning, "data": data}
    return described


if __name__ == "__main__":
    from memoryd.daemon.methods import Methods

    json.dump(describe(Methods.names()), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
