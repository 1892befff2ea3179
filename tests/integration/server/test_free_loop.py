"""The loop serves everybody: a request that waits for the ledger holds up nobody else."""

import pytest


@pytest.mark.parametrize("method", ["index", "model.prune"])
def test_request_that_waits_for_the_ledger_holds_up_nobody(memory, served, raw_client, path, method):
    memory.write("memory/a.md", "one\n")
    with served(memory, path), raw_client(path) as patient, raw_client(path) as other:
        memory.settle()
        with memory.live.database.write():  # as a lane does for a large document
            patient.ask(method)
            for _ in range(10):
                other.ask("ping")
                assert other.read()["result"]["pong"]
        assert "result" in patient.read()
