"""Embedders: text in, vectors out, each behind ``memoryd.store.protocols.Embedder``.

Each module wraps one engine or one remote service and is the only one that imports its library. Getting a
model onto the disk is not here: that is ``memoryd.jobs.models``.
"""
