-- Onus, schema 4: what was shown, and what reviewers said. Who and when is the ledger entry's to say.

CREATE TABLE evidence (
    seq           INTEGER PRIMARY KEY,
    workspace     INTEGER NOT NULL,
    task          TEXT    NOT NULL,
    check_id      TEXT    NOT NULL,
    verdict       TEXT    NOT NULL,
    exit          INTEGER,
    signal        INTEGER,
    took_ms       INTEGER NOT NULL,
    commit_id     TEXT,
    dirty         INTEGER NOT NULL,
    output        TEXT    NOT NULL,       -- the beginning and the end of it
    output_length INTEGER NOT NULL,
    output_sha256 TEXT    NOT NULL,
    environment   TEXT    NOT NULL,
    sandbox       TEXT    NOT NULL,
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT;

CREATE INDEX evidence_task ON evidence (workspace, task);

CREATE TABLE review (
    seq            INTEGER PRIMARY KEY,
    workspace      INTEGER NOT NULL,
    task           TEXT    NOT NULL,
    verdict        TEXT    NOT NULL,
    classification TEXT    NOT NULL,
    commit_id      TEXT,
    note           TEXT,
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT;

CREATE INDEX review_task ON review (workspace, task);
