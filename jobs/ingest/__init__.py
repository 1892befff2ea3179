"""Skills and docs as facts: files are cut into pieces, a language model is asked about each, its statements are kept.

The pure parts are a file each: ``pieces``, ``prompt``, ``answer``, ``grounding``, ``fact``, ``duplicates``, ``plan``.
At the edges stand ``sources`` (which files, read how), ``folder`` (facts on disk), ``asking`` (the model, and what it
answered before), ``aging`` (expiry and use) and ``run``, which puts them together. A fact is a markdown file of
memoryd's own, outside every workspace, and is indexed like any other file.
"""
