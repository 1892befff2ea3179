-- A chunk tells its passages by itself: a search reads them with its row, and an index four times as large can go.
ALTER TABLE chunks ADD COLUMN passages BLOB NOT NULL DEFAULT x'';  -- their ids, 8 bytes each; 0 = nothing to embed
UPDATE chunks SET passages = (
    SELECT packed(CASE WHEN text_hash IS NULL THEN 0 ELSE id END)
      FROM (SELECT p.id, p.text_hash FROM passages p
             WHERE p.document_id = chunks.document_id
               AND p.ordinal BETWEEN chunks.first_passage AND chunks.last_passage
             ORDER BY p.ordinal)
);
DROP INDEX passages_by_place;
