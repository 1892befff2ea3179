"""Session transcripts: from the lines that an agent's harness writes to the turns that are worth remembering.

Pure, but for ``tail.py``, which reads the bytes. What is done with the turns is told in ``jobs/index_transcript.py``.
"""
