"""``memoryd bench``: how fast one's own daemon is on one's own memory, beside what its parts take by themselves."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.bench_figures import Sample, draw_queries, summarise
from memoryd.daemon.commands.options import AddCommon, connect
from memoryd.daemon.commands.output import console, embedder_name, plural, print_json, say, size
from memoryd.store.errors import InvalidParams, NotFound

if TYPE_CHECKING:
    from memoryd.daemon.client import Client

_QUERIES = 50
_WARM_UP = 3
_FILES = 5000  # that are looked at for words …
_READ = 100  # … and that are read
_READ_BYTES = 64 * 1024  # of each
_FEW_PASSAGES = 20  # embedded since the start: of fewer no rate is told
_MEANING_ALONE = {"weights": {"words": 0, "trigram": 0}}
_KEYWORDS_ALONE = {"weights": {"vector": 0}}


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "bench",
        help="measure how fast the daemon answers on your own memory",
        description="Ask the running daemon, over its socket, queries drawn from the words of your notes, and tell how "
        "long it took, stage by stage, beside the bare embedding of the same queries. No vector of an earlier query is "
        "used and none is kept. Nothing is written, and no setting is changed.",
        epilog="Ctrl-C ends it early: what was measured until then is told.",
    )
    parser.add_argument("query", nargs="*", metavar="QUERY", help="ask these, instead of words drawn from your notes")
    parser.add_argument("--queries", type=Path, metavar="FILE", help="ask the lines of this file")
    parser.add_argument(
        "--count", "-n", type=int, default=_QUERIES, metavar="N", help="how many queries (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draw other words (default: %(default)s)")
    add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.count < 1:
        raise InvalidParams("--count must be at least 1.")
    with connect(arguments) as client:
        status = client.call("status")
        if not sum(each["chunks"] for each in status["workspaces"]):
            raise NotFound(
                "There is nothing to measure: no note is indexed.",
                hint="Write notes into a workspace ('memoryd status' lists them), then 'memoryd index'",
            )
        queries = _queries(arguments, status)
        if host := status["embedder"]["sends_to"]:
            say(f"Each query is sent to {host} twice to be embedded.")
        samples, stopped = _measure(client, queries, shown=sys.stderr.isatty() and not arguments.json)
        if not samples:
            return 130
        status = client.call("status")  # what the process takes now that it was asked
    result = {**summarise(samples), **_facts(status)}
    if arguments.json:
        print_json(result)
    else:
        _print(result)
        for remark in _remarks(result, status):
            say(remark)
    if stopped:
        say(f"Stopped early, after {len(samples)} of {len(queries) - _WARM_UP} queries.")
    return 130 if stopped else 0


# -- queries ----------------------------------------------------------------------------------------------


def _queries(arguments: argparse.Namespace, status: dict[str, Any]) -> list[tuple[str, str]]:
    """Those that were given, over and over, or drawn ones: one for the whole search, and one for words alone.

    Drawn, these are two: what was found out about the words of the first may be kept, and help with them.
    """
    count = arguments.count + _WARM_UP
    given = list(arguments.query)
    if arguments.queries:
        try:
            lines = arguments.queries.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InvalidParams(f"{arguments.queries} cannot be read: {error.strerror}.") from error
        given += [line.strip() for line in lines if line.strip()]
        if not given:
            raise InvalidParams(f"{arguments.queries} has no query.", hint="Write one on each line.")
    if given:
        return [(given[place % len(given)],) * 2 for place in range(count)]
    random = Random(arguments.seed)  # noqa: S311 - nothing is secret here
    drawn = draw_queries(list(_texts(status, random)), 2 * count, random)
    if not drawn:
        raise NotFound("No words could be drawn from your notes.", hint="Name queries: memoryd bench QUERY …")
    return list(zip(drawn[:count], drawn[count:], strict=True))


def _texts(status: dict[str, Any], random: Random) -> Iterator[str]:
    """The beginnings of some of the notes."""
    roots = [Path(each["root"]) for each in status["workspaces"] if each["available"] and each["chunks"]]
    files = [file for root in roots for file in islice(root.rglob("*.md"), _FILES)]
    for file in random.sample(files, min(_READ, len(files))):
        try:
            with file.open("rb") as note:
                yield note.read(_READ_BYTES).decode("utf-8", "ignore")
        except OSError:
            continue


# -- asking -----------------------------------------------------------------------------------------------


def _measure(client: Client, queries: Sequence[tuple[str, str]], *, shown: bool) -> tuple[list[Sample], bool]:
    """A sample a query, and whether somebody had enough of it."""
    samples: list[Sample] = []
    try:
        with console(stderr=True).status("Asking …") if shown else nullcontext() as told:
            for place, (query, other) in enumerate(queries):
                sample = _ask(client, query, other)
                if place >= _WARM_UP:
                    samples.append(sample)
                if told:
                    told.update(f"{len(samples)} of {len(queries) - _WARM_UP} queries")
    except KeyboardInterrupt:
        return samples, True
    return samples, False


def _ask(client: Client, query: str, other: str) -> Sample:
    """The whole search, and by turns with it the same query by meaning alone and the other one by words alone."""
    whole, answer = _timed(client, {"query": query, "cached": False, "explain": True})
    _, meaning = _timed(client, {"query": query, "cached": False, "explain": True, "settings": _MEANING_ALONE})
    keywords, _ = _timed(client, {"query": other, "settings": _KEYWORDS_ALONE})
    return Sample(
        whole_ms=whole,
        daemon_ms=answer["took_ms"],
        stages_ms=answer["timings_ms"],
        embedding_ms=meaning["timings_ms"].get("embed") if not meaning["degraded"] else None,
        keywords_ms=keywords,
        degraded=answer["degraded"]["reason"] if answer["degraded"] else None,
    )


def _timed(client: Client, params: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    answer = client.call("search", params)
    return (time.perf_counter() - began) * 1000, answer


# -- telling ----------------------------------------------------------------------------------------------


def _facts(status: dict[str, Any]) -> dict[str, Any]:
    stores, measures, embedder = status["stores"], status["measures"], status["embedder"]
    computed = measures["written"]["computed"]
    seconds = measures["jobs"].get("embed", {}).get("seconds", 0.0)
    return {
        "memory": {
            name: sum(each[name] for each in status["workspaces"])
            for name in ("indexed", "chunks", "passages", "vectors")
        },
        "indexing": status["health"]["state"] == "indexing",
        "embedder": {
            "model": embedder_name(embedder),
            "provider": embedder["provider"],
            "passages_per_s": round(computed / seconds, 1) if computed >= _FEW_PASSAGES and seconds else None,
        },
        "resident_bytes": measures["process"]["resident_bytes"],
        "disk_bytes": {
            "ledger": stores["ledger"]["bytes"],
            "vectors": stores["vectors"]["bytes"] if stores["vectors"] else None,
            "embedding_cache": stores["embedding_cache"]["bytes"],
        },
    }


def _print(result: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"{result['queries']:,} queries over the socket")
    for column in ("p50", "p95", "beside the embedding"):
        table.add_column(column, justify="right")
    bare = result["embedding_ms"]

    def add(name: str, times: dict[str, float] | None, style: str | None = None) -> None:
        if times:
            beside = f"{times['p50'] / bare['p50']:.1f} ×" if bare and bare["p50"] and times is not bare else ""
            table.add_row(name, f"{times['p50']:.1f} ms", f"{times['p95']:.1f} ms", beside, style=style)

    add("the bare embedding of the query", bare)
    add("search, by words and meaning" if bare else "search", result["search_ms"], "bold")
    for stage, times in result["stages_ms"].items():
        add(f"  {stage}", times, "dim")
    add("  the socket", result["socket_ms"], "dim")
    add("by words alone", result["keywords_ms"])
    console().print(table)
    memory, disk, embedder = result["memory"], result["disk_bytes"], result["embedder"]
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="dim")
    facts.add_column()
    held = (("indexed", "file"), ("chunks", "chunk"), ("vectors", "vector"))
    facts.add_row("memory", " · ".join(plural(memory[name], noun) for name, noun in held))
    rate = f" · {embedder['passages_per_s']:,.0f} passages/s since the start" if embedder["passages_per_s"] else ""
    facts.add_row("embedder", f"{embedder['model']}{rate}")
    facts.add_row("resident", size(result["resident_bytes"]))
    facts.add_row("disk", " · ".join(f"{name.replace('_', ' ')} {size(held)}" for name, held in disk.items() if held))
    console().print()
    console().print(facts)


def _remarks(result: dict[str, Any], status: dict[str, Any]) -> Iterator[str]:
    """What must be known to judge the figures."""
    if result["degraded"]:
        yield f"{result['degraded']} of {result['queries']} searches were degraded: {result['reason']}."
    if result["indexing"]:
        yield "The index is being brought up to date: 'memoryd index' waits until it is, and then it is faster."
    if status["embedder"]["asleep"]:
        yield "The model went to sleep meanwhile, and had to be loaded again."
