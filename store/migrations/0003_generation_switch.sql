-- What an embedder was made of (JSON: model and prompts), so that an earlier generation can be searched again, and since
-- when a generation is neither searched nor filled; NULL while it is one of both.
ALTER TABLE generations ADD COLUMN recipe TEXT NOT NULL DEFAULT '';
ALTER TABLE generations ADD COLUMN retired_at REAL;
