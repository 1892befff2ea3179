"""The examples in docs/protocol.md, run against a real server over a real memory."""

import json
import re
from itertools import groupby
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs/protocol.md").read_text()
EXAMPLES = re.findall(r"```jsonrpc\n(.*?)```", PAGE, re.DOTALL)


def fits(expected, actual):
    """Whether the answer holds what the example shows of it."""
    if expected == "…":
        return True
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and fits(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(fits, expected, actual))
    return expected == actual


def test_there_are_examples_for_every_part():
    assert len(EXAMPLES) == PAGE.count("```jsonrpc") >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_is_answered_as_it_says(memory, served, raw_client, path, example):
    memory.write("memory/goats.md", "# Goats\n\nThe goats eat the hedge.\n")
    with served(memory, path), raw_client(path) as client:
        memory.settle()
        for direction, lines in groupby(example.splitlines(), key=lambda line: line[0]):
            said = [line[2:] for line in lines]
            if direction == "→":
                client.send("\n".join(said).encode())  # in one go
            else:
                for expected in said:
                    answer = client.read()
                    assert fits(json.loads(expected), answer), (expected, answer)
