"""How a lane lets go of the jobs in hand."""

from __future__ import annotations


class Interrupted(Exception):
    """The lane is wanted for something else: to stop, to heal, another model. The jobs in hand go back to the queue."""
