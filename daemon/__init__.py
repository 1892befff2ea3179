"""The process: how it starts, stops, listens and is asked.

Here live the command line, the configuration, the watcher, the socket and its methods. The work itself is
in ``memoryd.jobs``; what is remembered is in ``memoryd.store``.
"""
