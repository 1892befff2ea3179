-- A file's name is among the words that its chunks are found by. Both indexes are rebuilt with it (schema.refold).
DROP VIEW worded_chunks;
DROP VIEW folded_chunks;
DROP VIEW chunk_texts;

CREATE VIEW chunk_texts AS
SELECT c.id, c.document_id, indexed_heading(c.heading, d.path, d.source) AS heading,
       (SELECT group_concat(text, '')
          FROM (SELECT text FROM passages p
                 WHERE p.document_id = c.document_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
                 ORDER BY p.ordinal)) AS text
  FROM chunks c LEFT JOIN documents d ON d.id = c.document_id;

CREATE VIEW folded_chunks AS
SELECT id, document_id, fold(heading) AS heading, fold(text) AS text FROM chunk_texts;

CREATE VIEW worded_chunks AS
SELECT id, document_id, words(heading) AS heading, words(text) AS text FROM chunk_texts;

DELETE FROM meta WHERE key = 'fold_version';
