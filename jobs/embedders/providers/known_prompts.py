"""What open models were trained to see before a text, by what their names have in common.

Servers that run any model put nothing before a text themselves. `embedder.query_prefix` and
`embedder.document_prefix` come first where they are set.
"""

from __future__ import annotations

from typing import Final

from memoryd.jobs.embedders.providers.provider import Prompts

_REPRESENT: Final = Prompts("Represent this sentence for searching relevant passages: ")
_KNOWN: Final = (
    ("nomic-embed", Prompts("search_query: ", "search_document: ")),
    ("embeddinggemma", Prompts("task: search result | query: ", "title: none | text: ")),
    (
        "qwen3-embedding",
        Prompts("Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"),
    ),
    ("multilingual-e5", Prompts("query: ", "passage: ")),
    ("snowflake-arctic-embed2", Prompts("query: ")),
    ("snowflake-arctic-embed", _REPRESENT),
    ("mxbai-embed-large", _REPRESENT),
)


def known_prompts(model: str) -> Prompts:
    name = model.casefold().replace("_", "-")
    return next((prompts for part, prompts in _KNOWN if part in name), Prompts())
