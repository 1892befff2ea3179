"""The nearest of many vectors: float32, float16, int8 and the mirror side by side, by time, bytes and what is found.

    python tools/mirror_bench.py --rows 35000 350000 --vectors ~/.cache/memoryd/eval/embeddings.db

Vectors are made of real ones, from an embedding cache: one and half of another, and noise half as long as a vector.
Without a cache, of random ones. Queries are real ones that none was made of. Times are CPU of one thread; of the
mirror, bytes in memory, without its index by id.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as memoryd does

import numpy as np
import simsimd

from memoryd.store.cache_numbers import as_matrix
from memoryd.store.mirror import CELL_ROWS, EXACT_ROWS, Mirror
from memoryd.store.precision import PRECISIONS, enlarge, shrink
from memoryd.store.protocols import Vectors

QUERIES = 40
ASKED = 400  # passages that a search asks for
PORTION = 50_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[35_000, 350_000])
    parser.add_argument("--vectors", type=Path, help="an embeddings.db")
    parser.add_argument("--mirror-only", action="store_true", help="leave out what takes more memory than there is")
    arguments = parser.parse_args()
    seeds = read_vectors(arguments.vectors) if arguments.vectors else normalised(np.random.default_rng(7), 20_000, 384)
    for rows in arguments.rows:
        measure(seeds, rows, mirror_only=arguments.mirror_only)
    return 0


def measure(seeds: Vectors, rows: int, *, mirror_only: bool) -> None:
    queries, dimension = seeds[:QUERIES], seeds.shape[1]
    best = nearest(seeds, rows, queries)
    print(f"\n{rows:,} ROWS OF {dimension}           MB    ms, least / p50   found of 10   of {ASKED}")
    if not mirror_only:
        whole = np.concatenate(list(made_of(seeds, rows)))
        half, small = whole.astype(np.float16), np.concatenate([shrink(part) for part in made_of(seeds, rows)])
        steps = 1 / np.linalg.norm(small.astype(np.float32), axis=1)
        tell("float32, numpy", whole.nbytes, queries, best, lambda query: order(whole @ query))
        tell("float32, simsimd", whole.nbytes, queries, best, lambda query: order(dots(query, whole)))
        tell("float16, simsimd", half.nbytes, queries, best, lambda query: order(dots(query.astype(np.float16), half)))
        tell(
            "int8 alone, simsimd",
            small.nbytes,
            queries,
            best,
            lambda query: order(dots(shrink(query[None])[0], small) * steps),
        )
        kept = enlarge(small)
        tell("int8 as it is kept", small.nbytes, queries, best, lambda query: order(kept @ query))
        del whole, half, small, kept
    forms = {"": rows + 1} if rows <= EXACT_ROWS else {", sketches": rows + 1}
    if rows >= CELL_ROWS:
        forms[", cells"] = CELL_ROWS
    for precision, (form, cell_rows) in product(PRECISIONS, forms.items()):
        with TemporaryDirectory() as folder:
            empty = Mirror(dimension, precision, folder=Path(folder), capacity=rows, cell_rows=cell_rows)
            mirror = fill(empty, made_of(seeds, rows))
            while rows >= cell_rows and not mirror.in_cells:
                time.sleep(0.1)
            held = sum(getattr(column, "nbytes", 0) for column in vars(mirror).values())
            tell(f"mirror of {precision}{form}", held, queries, best, partial(ask_mirror, mirror))


def ask_mirror(mirror: Mirror, query: Vectors) -> list[int]:
    return [match.passage_id for match in mirror.search(query, ASKED)]


def fill(mirror: Mirror, parts: Iterable[Vectors]) -> Mirror:
    for part in parts:
        first = len(mirror)
        mirror.upsert(range(first, first + len(part)), [0] * len(part), part)
    return mirror


def tell(name: str, size: int, queries: Vectors, best: list[list[int]], ask: Callable[[Vectors], list[int]]) -> None:
    spent, first, all_ = [], [], []
    ask(queries[0])
    for query, wanted in zip(queries, best, strict=True):
        began = time.thread_time()
        found = ask(query)
        spent.append((time.thread_time() - began) * 1000)
        first.append(len(set(found[:10]) & set(wanted[:10])) / 10)
        all_.append(len(set(found) & set(wanted)) / ASKED)
    figures = f"{min(spent):8.1f} / {np.median(spent):.1f}"
    print(f"{name:26}{size / 1e6:9.0f}   {figures:>17}   {np.mean(first):11.4f}   {np.mean(all_):.4f}", flush=True)


def dots(query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.asarray(simsimd.cdist(query[None], rows, "dot", out_dtype="f32"))[0]


def order(cosines: np.ndarray) -> list[int]:
    top = np.argpartition(-cosines, ASKED)[:ASKED]
    return [int(row) for row in top[np.lexsort((top, -cosines[top]))]]


def nearest(seeds: Vectors, rows: int, queries: Vectors) -> list[list[int]]:
    """The rows nearest to each query, in float32."""
    best: list[list[tuple[float, int]]] = [[] for _ in queries]
    first = 0
    for part in made_of(seeds, rows):
        for found, cosines in zip(best, queries @ part.T, strict=True):
            top = np.argpartition(-cosines, min(ASKED, len(part) - 1))[:ASKED]
            found.extend((-float(cosines[row]), first + int(row)) for row in top)
        first += len(part)
    return [[row for _, row in sorted(found)[:ASKED]] for found in best]


def made_of(seeds: Vectors, rows: int) -> Iterator[Vectors]:
    """The same vectors each time."""
    random = np.random.default_rng(0)
    seeds = seeds[QUERIES:]
    for start in range(0, rows, PORTION):
        count = min(PORTION, rows - start)
        one, other = (seeds[random.integers(0, len(seeds), count)] for _ in range(2))
        noise = random.standard_normal(one.shape, dtype=np.float32) * (0.5 / np.sqrt(seeds.shape[1]))
        matrix = one + other * np.float32(0.5) + noise
        yield np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def normalised(random: np.random.Generator, rows: int, dimension: int) -> Vectors:
    matrix = random.standard_normal((rows, dimension), dtype=np.float32)
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def read_vectors(cache: Path) -> Vectors:
    """Those of the fingerprint that the cache has most of, in no particular order."""
    with closing(sqlite3.connect(f"file:{cache.expanduser()}?mode=ro", uri=True)) as sql:
        (most,) = sql.execute("SELECT fingerprint FROM embeddings GROUP BY 1 ORDER BY count(*) DESC").fetchone()
        rows = sql.execute("SELECT vector, is_small FROM embeddings WHERE fingerprint = ? ORDER BY text_hash", (most,))
        return as_matrix(rows.fetchall())


if __name__ == "__main__":
    sys.exit(main())
