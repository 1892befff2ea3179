-- A session transcript: one file, many documents, read from where it was read to. `id` is that of a document at its path.
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

-- A run of its lines. Those with turns have a document, at the transcript's path with the ordinal behind it.
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
