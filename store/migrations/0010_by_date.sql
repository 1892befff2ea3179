-- What was written in the days that a query names is looked for by its date.
CREATE INDEX documents_by_date ON documents (date) WHERE date IS NOT NULL AND skipped IS NULL AND NOT evergreen;
