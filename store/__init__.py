"""What we remember: durable state and how it is read back.

Here live the SQLite ledger (documents, chunks, passages, the job queue, the embedding cache), the LanceDB
vector index, and the search over both. Nothing here watches, schedules, listens, or touches markdown files.
"""
