-- Onus, schema 3: time and cost. No table stores a total.

-- Sessions last whole seconds, so that every sum of them is exact.
UPDATE session SET started_at = started_at - started_at % 1000, ended_at = ended_at - ended_at % 1000;

-- When sessions began; those longer than a day, and those that run, are few and have an index of their own, so that a
-- period is found without reading all that came before it.
CREATE INDEX session_started ON session (workspace, started_at);
CREATE INDEX session_long ON session (workspace, started_at)
    WHERE ended_at IS NULL OR ended_at - started_at > 86400000;
-- What a worker did last in a workstation.
CREATE INDEX session_place ON session (workspace, worker, workstation, id);

ALTER TABLE assignment ADD COLUMN resting INTEGER NOT NULL DEFAULT 0;   -- the holder has stopped its session

-- What was said about a session afterwards: one row for each entry that says so. The last correction counts, and the
-- last usage under each key.
CREATE TABLE session_fact (
    seq                   INTEGER PRIMARY KEY,
    workspace             INTEGER NOT NULL,
    task                  TEXT    NOT NULL,
    session               INTEGER NOT NULL REFERENCES session (id),
    kind                  TEXT    NOT NULL,
    started_at            INTEGER,
    ended_at              INTEGER,
    key                   TEXT,
    source                TEXT,
    model                 TEXT,
    input_tokens          INTEGER,
    output_tokens         INTEGER,
    cache_read_tokens     INTEGER,
    cache_creation_tokens INTEGER,
    cost_micros           INTEGER,
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT;

CREATE INDEX session_fact_kind ON session_fact (workspace, kind, session, seq);

-- Periods that a person approved: whose, which days, and what was approved by its fingerprint.
CREATE TABLE approval (
    seq         INTEGER PRIMARY KEY,
    workspace   INTEGER NOT NULL,
    worker      TEXT    NOT NULL,
    first_day   TEXT    NOT NULL,
    last_day    TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    FOREIGN KEY (workspace, worker) REFERENCES worker (workspace, handle)
) STRICT;

CREATE INDEX approval_worker ON approval (workspace, worker, first_day);
