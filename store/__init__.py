"""What we remember: durable state and how it is read back.

Here live the SQLite ledger (documents, chunks, passages, the job queue, the embedding cache), the LanceDB
vector index, and the search over both. Nothing here watches, schedules, listens, or touches markdown files.
"""

import os

# numpy's threads spin between two products and take the core that the embedder needs; a query's product is small.
# Read when numpy is first imported, and everything that imports it goes through here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
