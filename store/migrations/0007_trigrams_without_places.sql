-- The chunks that a trigram stands in, not where in them: a seventh of the room. A search reads the text of the best.
DROP TABLE chunks_fts;
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    heading, text, content = 'folded_chunks', content_rowid = 'id', tokenize = 'trigram', detail = none
);
INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild');
INSERT INTO chunks_fts (chunks_fts) VALUES ('optimize');

-- What the old one took is given back at once.
INSERT OR IGNORE INTO jobs (key, kind, workspace, path, state, run_after, enqueued_at)
SELECT 'maintain', 'maintain', '', '', 'queued', 0, 0 WHERE EXISTS (SELECT 1 FROM chunks);
