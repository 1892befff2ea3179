"""Why a passage is not among a query's hits: where on its way it was lost, and the least that would bring it back.

The pipeline itself is asked again, with more room and with other settings: what is said here is what would happen.
Where the file is on disk, and whether it was read at all, is the daemon's to say (``daemon/whereabouts.py``).
"""
