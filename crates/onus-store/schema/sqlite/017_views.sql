-- Onus, schema 17: saved views, and the day by which a milestone is meant to be reached.

ALTER TABLE milestone ADD COLUMN target TEXT;

-- Filters of the board under a name that everybody sees; who saved one, and when, is in the ledger.
CREATE TABLE saved_view (
    workspace INTEGER NOT NULL REFERENCES workspace (id),
    name      TEXT    NOT NULL,
    query     TEXT    NOT NULL,          -- a JSON object of words
    saved     INTEGER NOT NULL,          -- the entry that says so
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;
