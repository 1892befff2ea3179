"""Embedding models as files: what exists, where it comes from, and how it becomes one GGUF on this disk.

Here live the catalogue, the download, the conversion and the installation. Running a model is not here: that
is ``memoryd.jobs.embedders``.
"""
