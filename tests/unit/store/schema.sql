CREATE INDEX chunks_by_key ON chunks (key);

CREATE INDEX chunks_by_passage ON chunks (document_id, last_passage, first_passage, ordinal);

CREATE INDEX documents_by_date ON documents (date) WHERE date IS NOT NULL AND skipped IS NULL AND NOT evergreen;

CREATE INDEX documents_by_filter ON documents (skipped, scope, date, source, workspace, path);

CREATE INDEX jobs_due ON jobs (state, kind, crashes, run_after);

CREATE INDEX passages_by_id ON passages (id);

CREATE INDEX vectors_by_document ON vectors (document_id);

CREATE VIRTUAL TABLE chunk_words USING fts5 (
    heading, text, content = 'worded_chunks', content_rowid = 'id',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

CREATE TABLE 'chunk_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'chunk_words_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'chunk_words_docsize'(id INTEGER PRIMARY KEY, sz BLOB);

CREATE TABLE 'chunk_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE chunks (
    id            INTEGER PRIMARY KEY,
    key           TEXT    NOT NULL,            -- hash of document, text and repetition: what callers see
    document_id   INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal       INTEGER NOT NULL,
    first_passage INTEGER NOT NULL,
    last_passage  INTEGER NOT NULL,
    heading       TEXT    NOT NULL,
    start_line    INTEGER NOT NULL,
    end_line      INTEGER NOT NULL, passages BLOB NOT NULL DEFAULT x'',
    UNIQUE (document_id, ordinal)
);

CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    heading, text, content = 'folded_chunks', content_rowid = 'id', tokenize = 'trigram', detail = none
);

CREATE TABLE documents (
    id           INTEGER PRIMARY KEY,
    workspace    TEXT    NOT NULL,
    path         TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    signature    TEXT    NOT NULL,             -- stat of the file when it was read
    content_hash TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    date         TEXT,                         -- ISO day
    evergreen    INTEGER NOT NULL,
    title        TEXT    NOT NULL,
    front_matter TEXT    NOT NULL,             -- JSON object
    notices      TEXT    NOT NULL,             -- JSON array of sentences
    skipped      TEXT,                         -- why the file is not indexed; NULL = it is
    indexed_at   REAL    NOT NULL, scope TEXT NOT NULL DEFAULT 'unknown',
    UNIQUE (workspace, path)
);

CREATE TABLE generations (
    id          INTEGER PRIMARY KEY,
    fingerprint TEXT    NOT NULL UNIQUE,
    model       TEXT    NOT NULL,
    dimension   INTEGER NOT NULL,
    active      INTEGER NOT NULL DEFAULT 0,
    created_at  REAL    NOT NULL
, recipe TEXT NOT NULL DEFAULT '', retired_at REAL);

CREATE TABLE jobs (
    key         TEXT    PRIMARY KEY,
    kind        TEXT    NOT NULL,
    workspace   TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'parked')),
    again       INTEGER NOT NULL DEFAULT 0,    -- asked for while running
    attempts    INTEGER NOT NULL DEFAULT 0,
    run_after   REAL    NOT NULL,
    enqueued_at REAL    NOT NULL,
    reason      TEXT,                          -- of the last failure
    hint        TEXT
, crashes INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE passages (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal     INTEGER NOT NULL,
    id          INTEGER NOT NULL,              -- key of its vector: a hash of document, text and repetition
    text        TEXT    NOT NULL,
    text_hash   BLOB,                          -- of what is embedded; NULL = nothing to embed
    start_line  INTEGER NOT NULL,
    end_line    INTEGER NOT NULL,
    PRIMARY KEY (document_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE segments (
    transcript_id INTEGER NOT NULL REFERENCES transcripts (id) ON DELETE CASCADE,
    ordinal       INTEGER NOT NULL,            -- from 1
    start         INTEGER NOT NULL,            -- bytes
    end           INTEGER NOT NULL,
    first_line    INTEGER NOT NULL,            -- from 1
    lines         INTEGER NOT NULL,
    turns         INTEGER NOT NULL,
    dropped       INTEGER NOT NULL,            -- lines without a turn
    unknown       INTEGER NOT NULL,            -- lines that are none of the format
    hash          TEXT    NOT NULL,            -- of its lines
    PRIMARY KEY (transcript_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE superseding (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,  -- whose front matter it is
    ordinal     INTEGER NOT NULL,              -- of the statement
    choice      INTEGER NOT NULL,              -- likeliest first
    is_newer    INTEGER NOT NULL,              -- 1: this document supersedes the other one, 0: is superseded by it
    other_id    INTEGER,                       -- whether there is such a document or not; NULL = it cannot be one
    PRIMARY KEY (document_id, ordinal, choice)
) WITHOUT ROWID;

CREATE TABLE transcripts (
    id        INTEGER PRIMARY KEY,
    workspace TEXT    NOT NULL,
    path      TEXT    NOT NULL,
    signature TEXT    NOT NULL,                -- stat of the file when it was read to its end; '' = it was not, or must be again
    file      TEXT    NOT NULL,                -- inode and device: another one is another file
    format    TEXT    NOT NULL,                -- '' = not told yet
    session   TEXT    NOT NULL,                -- '' = nobody has spoken yet
    read_to   INTEGER NOT NULL,                -- bytes, up to the end of the last whole line
    anchor    TEXT    NOT NULL,                -- of the bytes before that: if they changed, the file was rewritten
    skipped   TEXT,                            -- why the file is not read; NULL = it is
    UNIQUE (workspace, path)
);

CREATE TABLE vectors (
    generation  INTEGER NOT NULL REFERENCES generations (id) ON DELETE CASCADE,
    passage_id  INTEGER NOT NULL,
    document_id INTEGER NOT NULL,
    PRIMARY KEY (generation, passage_id)
) WITHOUT ROWID;

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

