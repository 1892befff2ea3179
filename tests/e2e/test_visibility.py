"""Who sees what, asked from the command line of a daemon with the real model."""

from __future__ import annotations

from tests.support.daemon import Machine

CONFIG = """
[[workspace]]
path = "~/notes"
scopes = ["user:* = memory/users/*/**"]
"""
NOTES = {
    "MEMORY.md": "# Memory\n\nThe office keys hang behind the door.\n",
    "memory/users/ana/keys.md": "Ana hides her spare keys under the flower pot.\n",
    "memory/users/bob/keys.md": "Bob hides his spare keys in the boat shed.\n",
    "memory/2026-10-01.md": "The keys to the archive are with Carla.\n",
    "memory/2026-10-20.md": "---\nsupersedes: 2026-10-01.md\n---\nThe keys to the archive are with Dora.\n",
    "memory/odd.md": "---\nscope: Ana\n---\nThe keys to the wine cellar are a secret.\n",
}


def test_each_sees_its_own(machine: Machine) -> None:
    machine.config_file.parent.mkdir(parents=True)
    machine.config_file.write_text(CONFIG)
    machine.env["MEMORYD_WORKSPACE"] = ""
    for path, text in NOTES.items():
        machine.write(path, text)

    def paths(query: str, *words: str) -> set[str]:
        return {hit["path"] for hit in machine.json("search", query, "--limit", "100", *words)["results"]}

    with machine.daemon() as daemon:
        daemon.settle()
        everything = {path for path in NOTES if path != "memory/2026-10-01.md"}
        shared = {"MEMORY.md", "memory/2026-10-20.md"}
        assert paths("spare keys") == everything
        assert paths("spare keys", "--scope", "user:ana") == shared | {"memory/users/ana/keys.md"}
        assert paths("spare keys", "--scope", "user:bob") == shared | {"memory/users/bob/keys.md"}
        # By meaning alone, in words that the note does not have
        assert "memory/users/bob/keys.md" in paths("where does he conceal the duplicate unlocking things")
        assert paths("where does he conceal the duplicate unlocking things", "--scope", "user:ana") <= shared | {
            "memory/users/ana/keys.md"
        }
        assert paths("keys", "--as-of", "2026-10-05", "--scope", "global") == {"MEMORY.md", "memory/2026-10-01.md"}
        assert paths("keys", "--after", "2026-10-02", "--before", "2026-10-31") == {"memory/2026-10-20.md"}
        assert paths("keys", "--exclude", "memory/users/", "--exclude", "MEMORY.md") == {
            "memory/2026-10-20.md",
            "memory/odd.md",
        }

        shown = machine.run("search", "archive keys", "--include-superseded", "--path", "memory/2026-10-01.md")
        assert "    superseded by memory/2026-10-20.md\n" in shown.stdout

        (remark,) = daemon.call("status")["workspaces"][0]["skipped"]
        assert (remark["path"], remark["indexed"]) == ("memory/odd.md", True)

        for words, told in ((("--scope", "ana"), "user:<id>"), (("--as-of", "today"), "a day such as 2026-11-15")):
            refused = machine.run("search", "keys", *words)
            assert refused.returncode != 0
            assert told in refused.stderr
