-- What a search reads of many chunks at once, without the rest of their rows: which chunks a passage is in ...
DROP INDEX chunks_by_passage;
CREATE INDEX chunks_by_passage ON chunks (document_id, last_passage, first_passage, ordinal);

-- ... and which passages a chunk has that can have a vector: their rows hold the text, and lie far apart.
CREATE INDEX passages_by_place ON passages (document_id, ordinal, id, text_hash);
