"""What every embedder inside this process has in common."""

from __future__ import annotations

from memoryd.store.protocols import Hold


class InProcess:
    """One thread at a time, in small batches for the sake of queries that wait; and nobody else to wait for."""

    batch = 4  # texts: enough to fill a pass of llama.cpp
    concurrent = False

    def hold(self) -> Hold | None:
        return None

    def try_again(self) -> None:
        """There is nothing to be asked again."""
