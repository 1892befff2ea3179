"""The tables of LanceDB that generations have: where each is, and how it comes into use."""

from __future__ import annotations

from pathlib import Path

from memoryd.jobs.heal import Healer
from memoryd.store.generations import Generation, Generations
from memoryd.store.lance import stored_ids
from memoryd.store.place import VectorPlace
from memoryd.store.precision import Precision
from memoryd.store.queue import Queue
from memoryd.store.vector_ids import Column, lacking
from memoryd.store.vectors import LanceVectors


class VectorTables:
    def __init__(
        self, place: VectorPlace, generations: Generations, queue: Queue, healer: Healer, precision: Precision
    ) -> None:
        self._place = place
        self._generations = generations
        self._queue = queue
        self._healer = healer
        self._precision = precision
        healer.set_aside = place.set_aside

    def path_of(self, generation: Generation) -> Path:
        return self._place.table_path(generation.fingerprint)

    def is_lost(self, generation: Generation) -> bool:
        """Whether its files are gone, as far as that can be seen from here."""
        return not (self._place.is_remote or self.path_of(generation).exists())

    def open(self, generation: Generation) -> LanceVectors:
        """Open the generation's vectors and make the ledger's marks true; a damaged table is begun anew."""

        def open_table() -> tuple[LanceVectors, Column]:
            table = LanceVectors(
                self._place,
                generation.fingerprint,
                generation.dimension,
                precision=self._precision,
                on_damage=self._healer.report,
            )
            return table, stored_ids(self._place, generation.fingerprint).passages

        index, held = self._healer.open("vectors", self.path_of(generation), open_table)
        if not len(held):
            self._generations.unmark(generation.id, None)
        else:
            marked = self._generations.marked(generation.id)
            self._generations.unmark(generation.id, lacking(marked, held).tolist())
            index.delete(lacking(held, marked).tolist())
        if index.is_convertible():
            self._queue.enqueue("maintain", afresh=False)
        return index
