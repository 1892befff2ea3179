-- How often the process died while it worked on a job: one that it dies of again and again is set aside.
ALTER TABLE jobs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;

-- Such a job comes after all others, so that they are not held up by it.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (state, kind, crashes, run_after);
