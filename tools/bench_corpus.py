"""The corpus and the queries of the benchmark: notes as an agent keeps them, made from a seed, the same each time.

Words follow Zipf's law: a head of common words, a middle of topic words, a long tail of names, numbers and
identifiers that occur once or twice. Notes have headings, lists, paragraphs, dates, code, and some are in Chinese,
Japanese or Korean.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from memoryd.jobs.chunking import group_chunks, split_passages
from memoryd.store.model import embedding_text


def _words(text: str) -> list[str]:
    return text.split()


TOPICS = {
    "deployment": _words("release rollout container registry pipeline staging canary rollback manifest cluster image"),
    "database": _words("migration index query replica transaction lock vacuum schema backup snapshot latency column"),
    "garden": _words("tomato seedling compost greenhouse frost trellis watering soil basil pruning harvest mulch"),
    "kitchen": _words("sourdough starter oven recipe flour simmer braise skillet pantry roast marinade saffron"),
    "travel": _words("itinerary hostel ferry luggage passport platform departure layover museum reservation visa"),
    "health": _words("physiotherapy shoulder appointment prescription sleep headache dentist allergy insulin knee"),
    "finance": _words("invoice budget deductible mortgage pension receipt transfer dividend insurance refund tax"),
    "music": _words("rehearsal chord cello metronome recital bowing tempo quartet rosin étude melody tuning"),
    "reading": _words("chapter novel essay margin translation footnote author library argument paperback proof"),
    "hardware": _words("firmware solder voltage sensor antenna bearing enclosure capacitor datasheet battery fan"),
    "people": _words("birthday colleague interview mentor daughter neighbour introduction wedding landlord friend"),
    "security": _words("credential rotation certificate audit firewall token permission incident sandbox threat"),
}
NOUNS = _words(
    "time week plan team note list change problem idea reason result question answer step part version project "
    "meeting morning decision option detail example case group summary draft order cost price report review test "
    "error file room table door window road house city letter message phone call office machine tool system service"
)
VERBS = _words(
    "moved checked wrote found fixed asked kept changed finished started compared measured ordered replaced tried "
    "dropped booked planned discussed agreed noticed repeated cleaned learned explained removed added postponed"
)
PRESENT = _words(
    "needs keeps uses takes shows breaks helps means costs wants works fails waits returns starts stops holds covers"
)
ADJECTIVES = _words(
    "new old small large early late slow quick quiet careful cheap expensive simple difficult important broken "
    "temporary final second weekly local remote strange reliable common rare warm cold clean empty full"
)
ADVERBS = _words("again slowly finally probably usually today together carefully almost twice already later instead")
JOINS = ["because", "so", "but", "although", "while", "and then", "before", "after", "until", "since"]
CLOSERS = ["for now", "this week", "as agreed", "without any trouble", "on the second try", "next time", "in the end"]
HEADS = ["Log", "Decisions", "Open questions", "Next steps", "What was learned", "Background", "Details", "Follow-up"]
SYLLABLES = _words("ka ve lo mir dan tor sel bri ona fen gar lu pes hal vin ro tam eli sor wen dra mo nix cal")
CJK = {
    "zh": _words(
        "今天 我们 讨论 数据库 迁移 计划 服务器 备份 已经 完成 需要 检查 日志 部署 流水线 因为 网络 延迟 "
        "会议 决定 花园 番茄 牙医 预约 发票 护照 排练 证书 轮换 问题 解决 明天 继续 重新 测试 结果 很好 "
        "索引 查询 变慢 原因 找到 更换 密钥"
    ),
    "ja": _words(
        "今日は 会議で 新しい 計画を 確認した データベースの 移行は 来週に 延期した 庭の トマトに 水を やる "
        "予約を 変更した 証明書を 更新する 必要が ある 旅行の 荷物を 準備した 問題は 解決した もう一度 試す "
        "結果を 記録する"
    ),
    "ko": _words(
        "오늘 회의에서 새로운 계획을 확인했다 데이터베이스 이전은 다음 주로 미뤘다 정원의 토마토에 물을 주었다 "
        "치과 예약을 변경했다 인증서를 교체해야 한다 여행 준비를 마쳤다 문제가 해결되었다 다시 시험한다"
    ),
}
LAST_DAY = date(2026, 11, 15)


@dataclass(frozen=True, slots=True)
class Note:
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Corpus:
    notes: list[Note]
    chunks: int
    passages: list[str]  # what memoryd embeds of them: distinct, in the notes' order


def make_corpus(chunks: int, seed: int = 7) -> Corpus:
    """Notes until they make so many chunks with memoryd's own splitting and default sizes."""
    writer = Writer(seed)
    notes: list[Note] = []
    passages: dict[str, None] = {}
    count = 0
    while count < chunks:
        note = writer.note(len(notes))
        split = split_passages(note.text)
        count += len(group_chunks(split, budget=400, overlap=80))
        passages.update(dict.fromkeys(text for passage in split if (text := embedding_text(passage))))
        notes.append(note)
    return Corpus(notes, count, list(passages))


def write_notes(notes: list[Note], folder: Path) -> None:
    for note in notes:
        path = folder / note.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note.text, encoding="utf-8")


def make_queries(count: int, seed: int = 8) -> list[str]:
    """Distinct questions of 4 to 12 words; one in ten is in Chinese, Japanese or Korean."""
    writer = Writer(seed)
    queries: dict[str, None] = {}
    while len(queries) < count:
        queries[writer.cjk_query() if len(queries) % 10 == 9 else writer.query()] = None
    return list(queries)


class Writer:
    """Writes notes; all its choices come from one seeded source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._topic = "deployment"

    def note(self, number: int, length: int = 1) -> Note:
        """``length``: so many times as long as a note usually is."""
        pick = self._random
        self._topic = pick.choice(list(TOPICS))
        language = pick.choices(["en", "zh", "ja", "ko"], [88, 6, 3, 3])[0]
        if number == 0:
            path, title = "MEMORY.md", "Memory"
        elif pick.random() < 0.6:
            day = LAST_DAY - timedelta(days=int(pick.expovariate(1 / 90)))
            path, title = f"memory/{day:%Y/%m}/{day}-{number}.md", f"{day}"
        elif pick.random() < 0.8:
            path, title = f"memory/{self._topic}/{self._topic}-{number}.md", f"{self._topic.title()} {self._name()}"
        else:
            path, title = f"skills/{self._topic}-{number}/SKILL.md", f"How to: {self._topic} {self._name()}"
        sections = [self._section(language) for _ in range(length * (1 + min(12, int(pick.expovariate(1 / 4)))))]
        front = f"---\ntags: [{self._topic}, {self._noun()}]\n---\n" if pick.random() < 0.2 else ""
        return Note(path, f"{front}# {title}\n\n" + "\n\n".join(sections) + "\n")

    def query(self) -> str:
        pick = self._random
        self._topic = pick.choice(list(TOPICS))
        words = pick.choice(
            [
                f"what did we decide about the {self._topic_word()} {self._noun()}",
                f"why was the {self._adjective()} {self._topic_word()} {pick.choice(VERBS)}",
                f"{self._topic_word()} {self._topic_word()} {self._noun()} {pick.choice(ADVERBS)}",
                f"how do I make the {self._topic_word()} {self._noun()} less {self._adjective()}",
                f"notes from the {self._noun()} with {self._name()} on {self._topic_word()}",
                f"when does the {self._topic_word()} {pick.choice(PRESENT)} a {self._adjective()} {self._topic_word()}",
                f"who {pick.choice(VERBS)} the {self._topic_word()} {pick.choice(CLOSERS)}",
            ]
        )
        return " ".join(words.split()[:12])

    def cjk_query(self) -> str:
        language = self._random.choice(list(CJK))
        words = self._random.sample(CJK[language], 3)
        return ("" if language != "ko" else " ").join(words)

    def short_query(self) -> str:
        """One or two characters of a Chinese, Japanese or Korean word."""
        word = self._random.choice(CJK[self._random.choice(list(CJK))])
        length = self._random.randint(1, 2)
        start = self._random.randint(0, max(0, len(word) - length))
        return word[start : start + length]

    def saved_note(self, word: str) -> str:
        """A note of a typical size with a word that no other has."""
        self._topic = self._random.choice(list(TOPICS))
        return f"# {self._name()}\n\n{self._section('en')}\n\nThe word of the day is {word}.\n\n{self._section('en')}\n"

    # -- parts of a note ----------------------------------------------------------------------------------

    def _section(self, language: str) -> str:
        pick = self._random
        blocks = [f"{'#' * pick.choice([2, 2, 2, 3])} {pick.choice(HEADS)}: {self._topic_word()} {self._noun()}"]
        for _ in range(pick.randint(1, 4)):
            kind = pick.choices(["paragraph", "list", "tasks", "code"], [60, 28, 9, 3])[0]
            if language != "en" and pick.random() < 0.8:
                blocks.append(self._cjk_paragraph(language))
            elif kind == "paragraph":
                blocks.append(" ".join(self._sentence() for _ in range(pick.randint(2, 7))))
            elif kind == "code":
                lines = [
                    f"{self._identifier()} --{self._noun()} {pick.randint(1, 9999)}" for _ in range(pick.randint(2, 6))
                ]
                blocks.append("\n".join(["```sh", *lines, "```"]))
            else:
                mark = "- [ ] " if kind == "tasks" else "- "
                blocks.append("\n".join(mark + self._sentence() for _ in range(pick.randint(2, 7))))
        return "\n\n".join(blocks)

    def _sentence(self) -> str:
        pick = self._random
        clause = self._clause()
        if pick.random() < 0.45:
            clause += f" {pick.choice(JOINS)} {self._clause()}"
        if pick.random() < 0.25:
            clause += f" {pick.choice(CLOSERS)}"
        return clause[0].upper() + clause[1:] + "."

    def _clause(self) -> str:
        pick = self._random
        return pick.choice(
            [
                lambda: f"we {pick.choice(VERBS)} the {self._noun_phrase()}",
                lambda: f"{self._name()} {pick.choice(VERBS)} the {self._noun_phrase()} {pick.choice(ADVERBS)}",
                lambda: f"the {self._noun_phrase()} {pick.choice(PRESENT)} the {self._noun_phrase()}",
                lambda: f"I {pick.choice(VERBS)} {pick.randint(2, 400)} of the {self._topic_word()} {self._noun()}s",
                lambda: f"on {self._day()} the {self._noun_phrase()} was {pick.choice(VERBS)}",
                lambda: f"`{self._identifier()}` {pick.choice(PRESENT)} the {self._noun_phrase()}",
                lambda: f"it {pick.choice(PRESENT)} more {self._noun()} than the {self._noun_phrase()}",
            ]
        )()

    def _noun_phrase(self) -> str:
        words = [self._adjective()] if self._random.random() < 0.5 else []
        words += [self._topic_word()] if self._random.random() < 0.7 else []
        return " ".join([*words, self._noun()])

    def _cjk_paragraph(self, language: str) -> str:
        pick = self._random
        space, stop = (" ", ". ") if language == "ko" else ("", "。")
        return (
            stop.join(space.join(pick.choices(CJK[language], k=pick.randint(4, 11))) for _ in range(pick.randint(3, 8)))
            + stop
        )

    # -- words --------------------------------------------------------------------------------------------

    def _topic_word(self) -> str:
        topic = self._topic if self._random.random() < 0.85 else self._random.choice(list(TOPICS))
        return self._zipf([topic, *TOPICS[topic]])

    def _noun(self) -> str:
        return self._zipf(NOUNS)

    def _adjective(self) -> str:
        return self._zipf(ADJECTIVES)

    def _zipf(self, words: list[str]) -> str:
        return self._random.choices(words, [1 / rank for rank in range(1, len(words) + 1)])[0]

    def _name(self) -> str:
        """The long tail: most of these occur once or twice."""
        return "".join(self._random.choices(SYLLABLES, k=self._random.choice([2, 2, 3]))).title()

    def _identifier(self) -> str:
        ending = self._random.choice(["", ".py", ".toml", f"_{self._random.randint(1, 99)}"])
        return f"{self._topic_word()}_{self._random.choice(NOUNS)}{ending}"

    def _day(self) -> str:
        day = LAST_DAY - timedelta(days=self._random.randint(0, 700))
        return self._random.choice([f"{day}", f"{day:%d %B}", f"{day:%A}"])


def slices(passages: list[str], count: int) -> Iterator[list[str]]:
    """Parts of the passages, each with the lengths of the whole: every count-th of them, ordered by length."""
    ordered = sorted(passages, key=len)
    for first in range(count):
        yield ordered[first::count]
