"""A question that says when, asked from the command line of a daemon with the real model."""

from __future__ import annotations

from tests.support.daemon import Machine

NOTES = {
    "MEMORY.md": "# Memory\n\nThe boat is called Petrel.\n",
    "memory/2026-05-04.md": "The boat was painted green, two coats.\n",
    "memory/2026-09-12.md": "The boat was painted blue, one coat and a second on Sunday.\n",
    "memory/2026-10-19.md": "The boat is in the shed for the winter.\n",
}
COLOUR = "what colour was the boat painted"


def test_note_of_the_days_that_are_named_is_the_first_hit(machine: Machine) -> None:
    for path, text in NOTES.items():
        machine.write(path, text)
    with machine.daemon() as daemon:
        daemon.settle()

        def first(query: str, *words: str) -> str:
            return str(machine.json("search", query, *words)["results"][0]["path"])

        assert first(COLOUR) == "memory/2026-09-12.md"  # of two that say alike things the newer one
        assert first(f"{COLOUR} in May 2026") == "memory/2026-05-04.md"
        assert first(f"{COLOUR} four months ago", "--as-of", "2026-09-08") == "memory/2026-05-04.md"
        assert first(f"{COLOUR} in May 2026", "--set", "named_days.strength=0") == "memory/2026-09-12.md"

        answer = machine.json("search", f"{COLOUR} in May 2026", "--explain")
        assert answer["period"] == {"said": "may 2026", "days": [{"first": "2026-05-01", "last": "2026-05-31"}]}
        explained = {hit["path"]: hit["explain"].get("named_days") for hit in answer["results"]}
        assert explained["MEMORY.md"] is None
        assert explained["memory/2026-05-04.md"]["days_away"] == 0
        assert explained["memory/2026-09-12.md"]["days_away"] == 104

        shown = machine.run("search", f"{COLOUR} in May 2026", "--explain")
        assert "Notes of “may 2026” come first: 2026-05-01 to 2026-05-31." in shown.stderr
        assert "(one of the days named, without that" in shown.stdout
        assert machine.json("search", f"{COLOUR} in May 2019")["period"] is None  # nothing was written then
