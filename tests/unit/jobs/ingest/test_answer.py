"""Whatever a language model answers is taken apart; what makes no sense is counted."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.ingest.answer import LONGEST, parse_answer, slug
from memoryd.jobs.ingest.grounding import keep_grounded
from memoryd.jobs.ingest.pieces import Piece
from memoryd.jobs.ingest.prompt import MOST_FACTS

A = '{"fact": "Deploys go out on Tuesdays.", "category": "procedure", "decay": "durable"}'
B = '{"fact": "Never run the migration twice.", "category": "warning", "decay": "permanent"}'
TEXTS = ["Deploys go out on Tuesdays.", "Never run the migration twice."]


@pytest.mark.parametrize(
    ("answer", "bad"),
    [
        (f"{A}\n{B}", 0),
        (f"{A}\n\n{B}\n", 0),
        (f"```json\n{A}\n{B}\n```", 0),
        (f"~~~\n{A}\n{B}\n~~~\n", 0),
        (f"[{A}, {B}]", 0),
        (f"[{A},\n{B},\n]", 0),
        (f"{A},\n{B},", 0),
        (f'{{"facts": [{A}, {B}]}}', 0),
        (f'{{"facts": [{A}, {B},],}}', 0),
        (f"{A} {B}", 0),
        (f"<think>What shall I say? {{}}</think>{A}\n{B}", 0),
        (json.dumps(json.loads(A), indent=2) + "\n" + json.dumps(json.loads(B), indent=2), 0),
        (f"Here are the facts:\n{A}\n{B}", 1),
        (f"Sure! Here you go:\n\n[{A}, {B}]\n\nHope that helps!", 0),
        (f"{A}\n{B}\nLet me know if you need more.\nGladly!", 2),
        (f'{A}\n{B}\n{{"fact": "Cut off in the mid', 1),
        (f'{A}\n{{"fact": "no end\n{B}', 1),
        (f'{A}\n{{"fact": 7}}\n{{}}\n{{"fact": ""}}\n{B}', 3),
        (f'{A}\n{{"fact": "short"}}\n{B}', 1),
        (f'{A}\n{B}\n{{"fact": "{"x" * (LONGEST + 1)}"}}', 1),
        (f"{A}\n{A.upper().replace('FACT', 'fact', 1)}\n{B}", 0),
        (f"1. {A}\n2. {B}", 2),
        (f"- {A}\n- {B}", 0),
        ('["Deploys go out on Tuesdays.", "Never run the migration twice."]', 0),
        ('{"facts": ["Deploys go out on Tuesdays.", {"statement": "Never run the migration twice."}, null]}', 1),
    ],
)
def test_facts_are_found_in_ugly_answers_and_what_is_none_is_counted(answer: str, bad: int) -> None:
    parsed = parse_answer(answer)
    assert [statement.text for statement in parsed.statements] == TEXTS
    assert parsed.bad == bad


@pytest.mark.parametrize(
    "answer", ["", "   \n", "```\n```", "[]", '{"facts": []}', "<think>Nothing.</think>", "<think>Noth"]
)
def test_no_fact_is_an_answer_too(answer: str) -> None:
    assert parse_answer(answer) == parse_answer("")
    assert parse_answer(answer).bad == 0


def test_category_tags_and_decay_are_held_to_what_there_is() -> None:
    said = {
        "fact": "The heron nests in May.",
        "category": " Tool ",
        "tags": ["A b/c", "", 3, "x" * 90],
        "decay": "Stable",
    }
    (statement,) = parse_answer(json.dumps(said)).statements
    assert (statement.category, statement.decay) == ("tool", "durable")
    assert statement.tags == ("a-b-c", "x" * 40)
    (odd,) = parse_answer('{"fact": "The heron nests in May.", "category": "birds", "decay": "for ever"}').statements
    assert (odd.category, odd.decay, odd.tags) == ("other", None, ())


def test_text_is_one_line_without_what_controls_or_hides() -> None:
    said = "Line one\n---\nscope: global\r\n\x1b[31mred\u202e back\u200bwards\x00 end"
    (statement,) = parse_answer(json.dumps({"fact": said})).statements
    assert statement.text == "Line one --- scope: global [31mred back wards end"


def test_joiners_inside_words_and_emoji_stay() -> None:
    said = "می\u200cخواهم and 👩\u200d💻 belong together"
    (statement,) = parse_answer(json.dumps({"fact": said})).statements
    assert statement.text == said


def test_more_facts_than_a_piece_can_have_are_left_out_and_counted() -> None:
    lines = "\n".join(json.dumps({"fact": f"Fact number {number} of many."}) for number in range(MOST_FACTS + 3))
    parsed = parse_answer(lines)
    assert len(parsed.statements) == MOST_FACTS
    assert parsed.bad == 3


@pytest.mark.parametrize(
    "answer", ["[" * 100_000, '{"fact":' * 50_000, '{"a": "' + "\\" * 99_999, "{" * 3000 + "}" * 3000]
)
def test_answer_that_is_meant_to_hurt_does_not(answer: str) -> None:
    assert parse_answer(answer).statements == ()


@given(st.text() | st.text(alphabet='{}[]",:\\ \nfact1'))
def test_any_answer_gives_clean_statements_or_none(answer: str) -> None:
    for statement in parse_answer(answer).statements:
        assert 0 < len(statement.text) <= LONGEST
        assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in statement.text)
        assert statement.text == " ".join(statement.text.split())


@given(st.text(max_size=80))
def test_slug_is_a_plain_word_or_nothing(text: str) -> None:
    assert slug(text) == slug(slug(text))
    assert "\n" not in slug(text)
    assert len(slug(text)) <= 40


def piece(text: str, heading: str = "") -> Piece:
    return Piece(text, heading, 1, 1, len(text))


@pytest.mark.parametrize(
    ("said", "text", "kept"),
    [
        ("Deploys go out on Tuesdays.", "We deploy on Tuesday, when all is calm. It goes out at nine.", True),
        ("The photos are copied to the attic box every Sunday.", "We deploy on Tuesday.", False),
        ("Only Ida has the key of the attic box.", "Only the dock has a key for the battery.", False),
        ("The port is 8080.", "Listens on port 8080.", True),
        ("灯台の鍵は箱の中にある。", "鍵は灯台の箱の中にしまってある。", True),
        ("猫は魚が好きだ。", "灯台の鍵は箱の中。", False),
    ],
)
def test_statement_that_has_little_of_the_text_is_not_of_it(said: str, text: str, kept: bool) -> None:
    parsed = keep_grounded(parse_answer(json.dumps({"fact": said})), piece(text))
    assert (len(parsed.statements), parsed.bad) == ((1, 0) if kept else (0, 1))
