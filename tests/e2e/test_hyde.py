"""``memoryd search --hyde`` as a process, with a real language model and without one."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon import Machine


def test_search_by_a_hypothetical_answer(machine: Machine, small_llm: Path) -> None:
    machine.write("memory/plumbing.md", "The faucet in the bathroom drips; a washer must be replaced.\n")
    machine.write("memory/boat.md", "The ferry leaves at nine.\n")
    machine.env = {
        "MEMORYD_LLM__PROVIDER": "local",
        "MEMORYD_LLM__MODEL": str(small_llm),
        "MEMORYD_SEARCH__HYDE__TIMEOUT_S": "20",
        "MEMORYD_SEARCH__HYDE__MAX_TOKENS": "24",
    }
    query = ("why does the tap drip", "--explain")
    with machine.daemon() as daemon:
        daemon.settle()
        plain = machine.run("search", *query)
        assert "ypothetical" not in plain.stderr
        found = machine.run("search", *query, "--hyde")
        assert found.returncode == 0
        assert "Searched by the hypothetical answer: " in found.stderr
        assert "memory/plumbing.md" in found.stdout
        hyde = machine.json("search", *query, "--hyde")["hyde"]
        assert hyde["used"] is True
        assert hyde["text"] in found.stderr.replace("\n", " ")
        assert daemon.events("query_done")[-1]["hyde"] is True
        assert hyde["text"] not in daemon.log()


def test_search_without_a_language_model_answers_and_tells_the_remedy(machine: Machine) -> None:
    machine.write("memory/plumbing.md", "The faucet in the bathroom drips.\n")
    machine.env = {"MEMORYD_SEARCH__HYDE__ENABLED": "true"}
    with machine.daemon() as daemon:
        daemon.settle()
        found = machine.run("search", "faucet")
        assert found.returncode == 0
        assert "memory/plumbing.md" in found.stdout
        assert "Without a hypothetical answer: no language model is configured." in found.stderr
        assert "→ Set llm.provider" in found.stderr
        quiet = machine.run("search", "faucet", "--no-hyde")
        assert "hypothetical" not in quiet.stderr
