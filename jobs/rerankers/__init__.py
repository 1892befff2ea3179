"""Rerankers: a query and a passage in, a score out, each behind ``memoryd.store.protocols.Reranker``.

Each module wraps one engine and is the only one that imports its library.
"""
