-- Marks are a part of the words that they are written in: vowels of Hindi, Bengali and Tamil. Made anew by schema.refold.
DROP TABLE chunk_words;

CREATE VIRTUAL TABLE chunk_words USING fts5 (
    heading, text, content = 'worded_chunks', content_rowid = 'id',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

DELETE FROM meta WHERE key = 'fold_version';
