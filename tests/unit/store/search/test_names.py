from __future__ import annotations

import pytest

from memoryd.store.search.names import has_unknown_name, names_of


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("When did Melanie paint a sunrise?", ["Melanie"]),
        ("why did we choose Mongo for sessions", ["Mongo"]),
        ("who wrote the RateLimiter of PostgreSQL", []),  # which may be written as two words, or shorter
        ("what does (Zoë) think of the Łódź office", ["Zoë", "Łódź"]),
        ("Terraform state locking", []),  # any word may begin a sentence
        ("It broke. Terraform refused. What did \u201cHashi\u201d say?", ["Hashi"]),
        ("\u201cTerraform\u201d state locking", []),
        ("what is our GDPR process", []),  # an acronym, which may be written out
        ("does the M4a lens fit the Kat8 mount", []),  # a number, which may be written in another way
        ("which of Li and Bo called", []),  # as short as a part of something
        ("what did we do on Monday in October", []),  # a note may say it in numbers
        ("How to Tune the Kernel", []),  # a title
        ("Who is Melanie?", []),  # nothing beside it is more than grammar: it may be a title
        ("Wo ist der Haupthahn zum Abdrehen des Wassers?", []),  # each noun has a capital
        ("où habite Mélanie", ["Mélanie"]),
        ("где живёт Мелани", ["Мелани"]),
        ("佐野課長の誕生日", []),
        ("", []),
    ],
)
def test_names_have_a_capital_where_no_sentence_begins(query: str, names: list[str]) -> None:
    assert names_of(query) == names


def test_a_name_is_unknown_if_it_stands_nowhere() -> None:
    assert has_unknown_name("did Melanie paint a sunrise", ["Melanie", "sunrise"])
    assert not has_unknown_name("did Melanie paint a sunrise", ["sunrise"])
    assert not has_unknown_name("did Melanie paint a sunrise", [])
