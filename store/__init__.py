"""What we remember: durable state and how it is read back.

Here live the SQLite ledger (documents, chunks, passages, the job queue, the embedding cache), the LanceDB
vector index, and the search over both. Nothing here watches, schedules, listens, or touches markdown files.
"""

import os

# numpy's threads spin between two products and take the core that the embedder needs; a query's product is small.
# Read when numpy is first imported, and everything that imports it goes through here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# OpenMP's threads, llama.cpp's and simsimd's, wait for each other after every step. If they spin without end, two of
# them on two busy cores are five times slower than one; if they sleep at once, a query takes four times as long on an
# idle machine. Read when such a library is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

# Arrow's own allocator keeps pages for every thread that ever freed one of its buffers, and LanceDB's threads come and
# go: 20 to 40 KB more for each write, for ever. Through the C library what is free is free. Read when pyarrow is first
# imported.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
