"""The work: what happens to a file after it changed.

Here live scanning, reading, chunking and embedding, the worker that runs jobs, the schedule that enqueues
them, and the models they need. Nothing here knows of sockets, signals or the command line.
"""
