"""``memoryd model bench``: two embedding models side by side, on one's own notes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import console, plural, print_json, say
from memoryd.daemon.commands.services import check_service, choose_embedder, leaves_for
from memoryd.store.errors import InvalidParams

if TYPE_CHECKING:
    from memoryd.jobs.model_bench import Exam, Result

_FEWEST = 20  # questions; of fewer nothing can be said


def add_action(actions: Any, add_common: AddCommon) -> None:
    words = "measure two models side by side on your own notes"
    sub = actions.add_parser(
        "bench",
        help=words,
        description=words.capitalize() + ": how quick each is, and how well it finds the rest of a passage by a "
        "sentence that was taken out of it. Nothing is indexed and no setting is changed.",
    )
    sub.add_argument("model", metavar="MODEL|SERVICE", help="the model to try, spelt as for 'memoryd model use'")
    sub.add_argument("beside", nargs="?", metavar="BESIDE", help="the one to compare it with (default: the one in use)")
    add_common(sub)
    sub.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import os

    from memoryd.daemon.configured import configured_workspaces
    from memoryd.jobs.model_bench import difference, read_notes, set_exam

    config, paths = load(arguments)
    one = choose_embedder(config.embedder, arguments.beside) if arguments.beside else config.embedder
    other = choose_embedder(config.embedder, arguments.model)
    for settings in (one, other):
        if settings.provider == "none":
            raise InvalidParams("There is nothing to measure: the provider is none", hint="Name two models.")
        check_service(settings, os.environ)
        if host := leaves_for(settings):
            say(f"Some of your notes are sent to {host} to be embedded.")
    notes = [each for each in configured_workspaces(config).values() if each.transcripts is None]
    exam = set_exam(read_notes(notes, config.index.max_file_bytes))
    if len(exam.questions) < _FEWEST:
        raise InvalidParams(
            f"Your notes make {plural(len(exam.questions), 'question')}; it takes {_FEWEST} to compare two models",
            hint="Name a larger workspace in the configuration, or with MEMORYD_CONFIG another configuration.",
        )
    results = [_measure(settings, paths.models_dir, exam) for settings in (one, other)]
    change = difference(*results)
    if arguments.json:
        told = {"passages": len(exam.passages), "questions": len(exam.questions)}
        bounds = {"found_first": round(change[0], 4), "ci95": [round(change[1], 4), round(change[2], 4)]}
        print_json({**told, "models": [result.as_json() for result in results], "difference": bounds})
    else:
        _print(exam, results, change)
    return 0


def _measure(settings: Any, models_dir: Path, exam: Exam) -> Result:
    from memoryd.daemon.configured_models import ConfiguredModels
    from memoryd.jobs.model_bench import sit_exam

    with _told(f"{settings.model}: {len(exam.passages)} passages, {len(exam.questions)} questions"):
        embedder = ConfiguredModels(settings, models_dir).load(lambda *_: None)
        try:
            return sit_exam(embedder, exam)
        finally:
            embedder.close()


@contextmanager
def _told(what: str) -> Iterator[None]:
    with console(stderr=True).status(what):
        yield


def _print(exam: Exam, results: list[Result], change: tuple[float, float, float]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("model", "dim", "passages/s", "a query", "found first", "in ten", "MRR"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for result in results:
        table.add_row(
            result.model,
            str(result.dimension),
            f"{result.passages_per_s:,.0f}",
            f"{result.query_ms:.1f} ms",
            f"{result.found_first:.3f}",
            f"{result.found_in_ten:.3f}",
            f"{result.mrr:.3f}",
        )
    console().print(table)
    difference, low, high = change
    told = "cannot be told from chance" if low <= 0 <= high else "is more than chance"
    say(
        f"{results[1].model} finds {abs(difference):.3f} {'fewer' if difference < 0 else 'more'} first "
        f"({low:+.3f} to {high:+.3f} with 95 % confidence): that {told} on {len(exam.questions)} questions made from "
        f"your own notes."
    )
    say("With questions of your own, 'memoryd eval --compare' measures the whole search.")
