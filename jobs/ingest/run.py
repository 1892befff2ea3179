"""One run of ingest: every piece of every file answered, and the facts made what the answers say.

A file's facts are touched when all of its pieces are answered: until then those of before hold. So a run that is cut
off anywhere leaves whole files behind, and the next one goes on with the answers that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memoryd.jobs.ingest.answer import Parsed, parse_answer
from memoryd.jobs.ingest.asking import Asking, estimate_question
from memoryd.jobs.ingest.duplicates import Embed, Known
from memoryd.jobs.ingest.fact import Fact
from memoryd.jobs.ingest.folder import FactFolder, fact_path
from memoryd.jobs.ingest.forgetting import forgotten, write_facts
from memoryd.jobs.ingest.grounding import keep_grounded
from memoryd.jobs.ingest.pieces import Piece, split_pieces
from memoryd.jobs.ingest.plan import Place, Plan, plan_file, supersede, wanted_facts
from memoryd.jobs.ingest.sources import SourceFile, Sources, read_sources
from memoryd.jobs.workspace import Workspace
from memoryd.store.answers import Answers
from memoryd.store.errors import MemorydError, PromptTooLong, WorkspaceUnavailable


@dataclass(frozen=True, slots=True)
class RunSettings:
    globs: tuple[str, ...]
    everything: bool  # the globs are those that are configured: facts of other files have no source any more
    chunk_chars: int = 800
    overlap_chars: int = 100
    decay: str = "durable"
    similarity: float = 0.92
    max_tokens: int = 512
    max_file_bytes: int = 10_485_760


@dataclass(slots=True)
class Report:
    """How far a run is, and in the end what came of it. Read by other threads while it is filled in."""

    files: int = 0
    pieces: int = 0
    answered: int = 0  # pieces with an answer, asked or kept
    kept: int = 0  # of those, answered by an earlier run
    asked: int = 0  # calls that were answered
    bad_lines: int = 0  # of answers, that were no fact
    facts: int = 0  # that hold in the end
    stored: int = 0
    changed: int = 0
    superseded: int = 0
    duplicates: int = 0
    dismissed: int = 0  # not stored because a person forgot them, or because they expired
    tokens: int = 0  # estimated: spent, or in a dry run what the rest would cost
    skipped: list[tuple[str, str, str]] = field(default_factory=list)  # workspace, path, why
    failed: list[tuple[str, str, str]] = field(default_factory=list)  # the same of pieces, with their lines
    planned: list[Fact] = field(default_factory=list)  # in a dry run, what would be stored
    complete: bool = False
    error: MemorydError | None = None  # why it is not


Answered = list[tuple[Piece, Parsed]]  # the pieces of a file, and what was said of each


class IngestRun:
    """The parts that a run works with; ``report`` tells how far it is."""

    def __init__(
        self,
        workspaces: Sequence[Workspace],
        folder: FactFolder,
        answers: Answers,
        asking: Asking,
        embed: Embed,
        settings: RunSettings,
        now: Callable[[], float],
        on_written: Callable[[Sequence[str]], None],
    ) -> None:
        self._workspaces = workspaces
        self._folder = folder
        self._answers = answers
        self._asking = asking
        self._embed = embed
        self._settings = settings
        self._now = now
        self._on_written = on_written
        self.report = Report()

    def work(self, *, dry: bool = False) -> Report:
        """Never raises a ``MemorydError``: what stopped it is in the report."""
        try:
            looked = [(workspace.name, self._look(workspace)) for workspace in self._workspaces]
            for name, sources in looked:
                if sources is not None:
                    self._work_on(name, sources, dry=dry)
            self.report.complete = not dry or self.report.answered == self.report.pieces
        except MemorydError as error:
            self.report.error = error
        self.report.facts = sum(not fact.superseded_by for fact in self._folder.read_all())
        return self.report

    def _look(self, workspace: Workspace) -> Sources | None:
        settings = self._settings
        known = [fact.origin.path for fact in self._folder.read(workspace.name).values()]
        try:
            sources = read_sources(workspace, settings.globs, settings.max_file_bytes, known)
        except WorkspaceUnavailable as error:  # what cannot be looked at is left as it is
            self.report.skipped.append((workspace.name, "", error.message))
            return None
        self.report.skipped.extend((workspace.name, path, why) for path, why in sorted(sources.skipped.items()))
        self.report.files += len(sources.files)
        self.report.pieces += sum(len(self._split(file)) for file in sources.files)
        return sources

    def _split(self, file: SourceFile) -> list[Piece]:
        return split_pieces(file.text, self._settings.chunk_chars, self._settings.overlap_chars)

    def _work_on(self, name: str, sources: Sources, *, dry: bool) -> None:
        facts = _by_path(self._finish_forgetting(self._folder.read(name), dry=dry))
        self._drop_gone(sources, facts, dry=dry)
        known = Known(self._embed, self._settings.similarity)
        known.add(fact for of_file in facts.values() for fact in of_file.values() if not fact.superseded_by)
        answered: list[tuple[SourceFile, Answered]] = []
        duplicates = superseded = 0
        for file in sources.files:
            answers = self._answer(file, dry=dry)
            if answers is not None:
                plan = self._settle(file, answers, facts, known, dry=dry)
                answered.append((file, answers))
                duplicates += plan.duplicates
                superseded += len(plan.superseded)
        if duplicates and superseded:  # what was not stored may have been the duplicate of what is superseded since
            for file, answers in answered:
                self._settle(file, answers, facts, known, dry=dry, again=True)

    def _answer(self, file: SourceFile, *, dry: bool) -> Answered | None:
        """The answers about a file; None where a dry run would have to ask first."""
        answers: Answered = []
        lacking = False
        for piece in self._split(file):
            answer = self._asking.kept(piece)
            if answer is not None:
                self.report.kept += 1
            elif dry:
                lacking = True
                self.report.tokens += estimate_question(piece) + self._settings.max_tokens
                continue
            else:
                answer = self._ask(file, piece)
            self.report.answered += 1
            parsed = keep_grounded(parse_answer(answer or ""), piece)
            self.report.bad_lines += parsed.bad
            answers.append((piece, parsed))
        return None if lacking else answers

    def _ask(self, file: SourceFile, piece: Piece) -> str | None:
        try:
            answer = self._asking.ask(piece)
        except PromptTooLong as error:  # of this piece alone
            place = f"{file.path}#L{piece.start_line}-L{piece.end_line}"
            self.report.failed.append((file.workspace, place, error.message))
            return None
        self.report.asked, self.report.tokens = self._asking.calls, self._asking.tokens
        return answer

    def _settle(
        self,
        file: SourceFile,
        answers: Answered,
        facts: dict[str, dict[str, Fact]],
        known: Known,
        *,
        dry: bool,
        again: bool = False,
    ) -> Plan:
        """Make the facts of a file what its answers say."""
        now = self._now()
        wanted = wanted_facts(Place(file.workspace, file.path, file.scope), answers, self._settings.decay, now)
        of_file = facts.setdefault(file.path, {})
        plan = plan_file(wanted, of_file, known, self._answers.dismissed(), now)
        of_file.update((fact.id, fact) for fact in plan.writes)
        self.report.stored += len(plan.new)
        self.report.changed += len(plan.changed)
        self.report.superseded += len(plan.superseded)
        self.report.duplicates += -len(plan.new) if again else plan.duplicates
        self.report.dismissed += 0 if again else plan.dismissed
        if dry:
            self.report.planned.extend(plan.new)
        else:
            self._write(plan.writes)
        return plan

    def _finish_forgetting(self, facts: dict[str, Fact], *, dry: bool) -> dict[str, Fact]:
        """Without the facts that are forgotten, and whose files a crash has left behind."""
        left = {fact.id: fact for fact in forgotten(self._answers, facts.values())}
        if left and not dry:
            for fact in left.values():
                self._folder.remove(fact)
            self._on_written([fact_path(fact) for fact in left.values()])
        return {identity: fact for identity, fact in facts.items() if identity not in left}

    def _drop_gone(self, sources: Sources, facts: dict[str, dict[str, Fact]], *, dry: bool) -> None:
        now = self._now()
        gone = []
        for path, of_file in facts.items():
            if sources.is_gone(path, everything=self._settings.everything):
                marked = [supersede(fact, (), now) for fact in of_file.values() if not fact.superseded_by]
                of_file.update((fact.id, fact) for fact in marked)
                gone.extend(marked)
        self.report.superseded += len(gone)
        if not dry:
            self._write(gone)

    def _write(self, facts: Sequence[Fact]) -> None:
        write_facts(self._folder, self._answers, facts)
        if facts:
            self._on_written([fact_path(fact) for fact in facts])


def _by_path(facts: Mapping[str, Fact]) -> dict[str, dict[str, Fact]]:
    found: dict[str, dict[str, Fact]] = {}
    for fact in facts.values():
        found.setdefault(fact.origin.path, {})[fact.id] = fact
    return found
