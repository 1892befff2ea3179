"""What a person forgets stays forgotten, whoever writes it at the same moment.

Who forgets a fact says so first and removes it then; who writes one looks then whether it was forgotten. Whichever is
last, the file is gone, and neither waits for the other: a run of ingest waits for a language model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from memoryd.jobs.ingest.fact import Fact
from memoryd.jobs.ingest.folder import FactFolder
from memoryd.store.answers import Answers


def forget_facts(folder: FactFolder, answers: Answers, facts: Collection[Fact]) -> None:
    """Remove facts for good: their statements are not stored again from these files."""
    answers.dismiss((fact.id, "") for fact in facts)
    for fact in facts:
        folder.remove(fact)


def write_facts(folder: FactFolder, answers: Answers, facts: Collection[Fact]) -> None:
    for fact in facts:
        folder.write(fact)
    if facts:
        for fact in forgotten(answers, facts):
            folder.remove(fact)


def forgotten(answers: Answers, facts: Iterable[Fact]) -> list[Fact]:
    """Those of them that a person has forgotten."""
    dismissed = answers.dismissed()
    return [fact for fact in facts if (fact.id, "") in dismissed]
