"""``memoryd model``: which embedding models there are, and which one is used."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands import model_bench
from memoryd.daemon.commands.generations import add_actions
from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import console, print_json, say, size
from memoryd.daemon.commands.services import check_service, choose_embedder, leaves_for, list_services, print_services
from memoryd.store.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from memoryd.daemon.config import Embedder, Rerank
    from memoryd.jobs.models.install import Progress


def add_parser(commands: Any, add_common: AddCommon) -> None:
    parser = commands.add_parser(
        "model",
        help="list, install, choose or go back from the embedding model",
        description="The models that turn notes and queries into vectors, here or at a service.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list", help="show the catalogue and the services, what is installed, and what is used"
    )
    add_common(listing)
    listing.set_defaults(run=list_models)
    for name, action, words in (
        ("install", install_model, "fetch and verify a model (default: the configured one)"),
        ("use", use_model, "install a model and make it the configured one"),
    ):
        sub = actions.add_parser(name, help=words, description=words.capitalize() + ".")
        sub.add_argument(
            "model",
            nargs="?" if name == "install" else None,
            metavar="MODEL|SERVICE" if name == "use" else "MODEL",
            help='a name from the catalogue, "hf:org/repo/file.gguf", or a .gguf file'
            + ("; a service, as openai or openai:MODEL; or none" if name == "use" else ""),
        )
        if name == "use":
            sub.add_argument(
                "--base-url", metavar="URL", help="where the service is asked; its own address unless given"
            )
        add_common(sub)
        sub.set_defaults(run=action)
    add_actions(actions, add_common)
    model_bench.add_action(actions, add_common)


def list_models(arguments: argparse.Namespace) -> int:
    from memoryd.jobs.models.catalogue import CATALOGUE
    from memoryd.jobs.models.install import installed

    config, paths = load(arguments)
    is_local = config.embedder.provider in ("auto", "local")
    used = config.embedder.model if is_local else ""
    rows = [
        {
            "name": model.name,
            "summary": model.summary,
            "languages": model.languages,
            "dimension": model.dimension,
            "context": model.context,
            "license": model.license,
            "megabytes": model.megabytes,
            "query_prefix": model.query_prefix,
            "document_prefix": model.document_prefix,
            "installed": str(installed(paths.models_dir, model.name) or "") or None,
            "used": model.name == used,
        }
        for model in CATALOGUE
    ]
    if used and used not in [row["name"] for row in rows]:
        path = installed(paths.models_dir, used)
        rows.append({"name": used, "summary": "as configured", "installed": str(path or "") or None, "used": True})
    services = list_services(config.embedder, os.environ)
    rerankers = _list_rerankers(config.search.rerank, paths.models_dir)
    if arguments.json:
        print_json({"models": rows, "rerankers": rerankers, "services": services})
    else:
        _print_table(rows)
        _print_rerankers(rerankers)
        print_services(services, config.embedder.provider)
    return 0


def install_model(arguments: argparse.Namespace) -> int:
    config, paths = load(arguments)
    if arguments.model and (path := _install_reranker(arguments.model, paths.models_dir)):
        return _tell_installed(arguments, arguments.model, path)
    spec = arguments.model or config.embedder.model
    if not arguments.model and config.embedder.provider not in ("auto", "local"):
        raise InvalidParams(
            f"embedder.provider is {config.embedder.provider}: there is nothing to install",
            hint="Name the model to install, or use 'memoryd model use' to have another one used.",
        )
    return _tell_installed(arguments, spec, _install(spec, paths.models_dir))


def _tell_installed(arguments: argparse.Namespace, spec: str, path: Path) -> int:
    if arguments.json:
        print_json({"model": spec, "path": str(path), "bytes": path.stat().st_size})
    else:
        say(f"{spec} is installed: {path} ({size(path.stat().st_size)})")
    return 0


def use_model(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.config_edit import set_values
    from memoryd.daemon.configured_models import changed_settings

    config, paths = load(arguments)
    chosen = choose_embedder(config.embedder, arguments.model, arguments.base_url)
    check_service(chosen, os.environ)
    path = _install(chosen.model, paths.models_dir) if chosen.provider in ("auto", "local") else None
    written = {"model": chosen.model, **changed_settings(config.embedder, chosen)}
    set_values(paths.config_file, {f"embedder.{name}": value for name, value in written.items()})
    begun = _begin_switch(chosen, paths.socket)
    if arguments.json:
        print_json(
            {
                "model": chosen.model,
                "provider": chosen.provider,
                "path": str(path) if path else None,
                "config": str(paths.config_file),
                "switching": bool(begun),
            }
        )
        return 0
    for name, value in written.items():
        say(f"embedder.{name} = {value!r} in {paths.config_file}")
    if chosen.provider == "none":
        say("Notes are found by their words alone from now on." if begun else "From the next start of memoryd on.")
        return 0
    if host := leaves_for(chosen):
        say(f"Notes and queries are sent to {host} to be embedded.")
    if begun is None:
        say("The next start of memoryd embeds the notes anew; until that is done the model before is searched by.")
    else:
        say("memoryd embeds the notes anew; until that is done the model before is searched by.")
        say("'memoryd status' says how far it is, 'memoryd model rollback' gives it up.")
    return 0


def _begin_switch(chosen: Embedder, socket: Path) -> dict[str, Any] | None:
    """Have a running daemon go over to the model; None if there is none."""
    from memoryd.daemon.client import Client
    from memoryd.store.errors import NotRunning

    try:
        with Client(socket) as client:
            params = {"model": chosen.model, "provider": chosen.provider, "base_url": chosen.base_url}
            begun: dict[str, Any] = client.call("model.use", params)
            return begun
    except NotRunning:
        return None


def _install_reranker(spec: str, models_dir: Path) -> Path | None:
    """The file of a reranker of the catalogue; None where the name is none of those."""
    from memoryd.jobs.models.rerankers import RERANKERS, install_reranker

    if spec.casefold() not in [model.name for model in RERANKERS]:
        return None
    return _with_progress(install_reranker, spec, models_dir)


def _list_rerankers(settings: Rerank, models_dir: Path) -> list[dict[str, Any]]:
    from memoryd.jobs.models.rerankers import RERANKERS, installed_reranker

    return [
        {
            "name": model.name,
            "summary": model.summary,
            "languages": model.languages,
            "license": model.license,
            "megabytes": model.megabytes,
            "extra": "rerank" if model.needs_extra else None,
            "installed": str(installed_reranker(models_dir, model.name) or "") or None,
            "used": settings.enabled and model.name == settings.model,
        }
        for model in RERANKERS
    ]


def _install(spec: str, models_dir: Path) -> Path:
    from memoryd.jobs.models.install import install

    return _with_progress(install, spec, models_dir)


def _with_progress(install: Callable[[str, Path, Progress], Path], spec: str, models_dir: Path) -> Path:
    from memoryd.jobs.models.install import ignore_progress

    if not sys.stderr.isatty():
        return install(spec, models_dir, ignore_progress)
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def report(stage: str, done: int, total: int | None) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        progress: Progress = report
        return install(spec, models_dir, progress)


def _print_rerankers(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "reranker", "languages", "MB", "licence", "installed", ""):
        table.add_column(column)
    for row in rows:
        needs = "; needs the extra memoryd[rerank]" if row["extra"] else ""
        table.add_row(
            "●" if row["used"] else "",
            row["name"],
            row["languages"],
            str(row["megabytes"]),
            row["license"],
            "yes" if row["installed"] else "no",
            f"{row['summary']}{needs}",
        )
    console().print()
    console().print(table)
    console().print()


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "model", "languages", "dim", "context", "MB", "licence", "installed", ""):
        table.add_column(column)
    for row in rows:
        table.add_row(
            "●" if row["used"] else "",
            row["name"],
            row.get("languages", ""),
            str(row.get("dimension", "")),
            str(row.get("context", "")),
            str(row.get("megabytes", "")),
            row.get("license", ""),
            "yes" if row["installed"] else "no",
            row["summary"],
        )
    console().print(table)
