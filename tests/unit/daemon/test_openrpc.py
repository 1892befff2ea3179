"""The description of the methods: complete, made from the code, and the one that is in the docs."""

import json
from pathlib import Path

import pytest

from memoryd.daemon.methods import Methods
from memoryd.daemon.openrpc import describe, schema_of
from memoryd.daemon.protocol import ERROR_NUMBERS

DOCS = Path(__file__).parents[3] / "docs/openrpc.json"


@pytest.fixture(scope="module")
def table():
    return Methods.names()


def test_description_in_the_docs_is_the_one_that_the_code_makes(table):
    remedy = "python -m memoryd.daemon.openrpc > docs/openrpc.json"
    assert json.loads(DOCS.read_text()) == describe(table), remedy


def test_every_method_is_described_with_a_sentence_and_its_parameters(table):
    methods = {method["name"]: method for method in describe(table)["methods"]}
    assert set(methods) == set(table)
    for method in methods.values():
        assert method["summary"].endswith(".")
        assert all(param["description"] for param in method["params"])
    query, *_ = methods["search"]["params"]
    assert (query["name"], query["required"]) == ("query", True)


def test_every_error_is_described_with_its_number(table):
    errors = describe(table)["components"]["errors"]
    assert {code: error["code"] for code, error in errors.items()} == dict(ERROR_NUMBERS)
    assert errors["busy"]["data"]["retryable"] is True


def test_method_without_declared_types_is_described_all_the_same():
    (method,) = describe(["undeclared.method"])["methods"]
    assert method["params"] == []
    assert method["result"]["schema"] == {"type": "object", "additionalProperties": {}}


def test_type_that_json_schema_has_no_word_for_is_refused():
    with pytest.raises(TypeError):
        schema_of(object, {})
