-- Who a document is for. What was written before this was known is for nobody in particular until it is read again.
ALTER TABLE documents ADD COLUMN scope TEXT NOT NULL DEFAULT 'unknown';

-- What filters look at, without the rest of the row.
CREATE INDEX documents_by_filter ON documents (skipped, scope, date, source, workspace, path);

-- What a document's front matter says about which of two documents is out of date: one row for each place where
-- the other one may be. The place that exists counts, of several the first.
CREATE TABLE superseding (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,  -- whose front matter it is
    ordinal     INTEGER NOT NULL,              -- of the statement
    choice      INTEGER NOT NULL,              -- likeliest first
    is_newer    INTEGER NOT NULL,              -- 1: this document supersedes the other one, 0: is superseded by it
    other_id    INTEGER,                       -- whether there is such a document or not; NULL = it cannot be one
    PRIMARY KEY (document_id, ordinal, choice)
) WITHOUT ROWID;

-- Chunks are excluded by the key that callers see.
CREATE INDEX chunks_by_key ON chunks (key);
