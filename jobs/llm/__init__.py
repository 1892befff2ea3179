"""Language models: a prompt in, text out, each behind ``memoryd.jobs.llm.protocol.LanguageModel``.

Each module wraps one engine or one kind of remote service. What is asked of a model is not here: that is the
business of who asks (``memoryd.jobs.hyde``). Nothing here is called unless the configuration names a model.
"""
