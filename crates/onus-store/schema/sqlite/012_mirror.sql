-- Onus, schema 12: the outbox. A mirror hears the ledger by a cursor, so nothing is written for it when something happens; what is
-- kept here is how far it has been told of each task, and what became of that.

CREATE TABLE mirror (
    workspace  INTEGER NOT NULL REFERENCES workspace (id),
    name       TEXT    NOT NULL,
    heard      INTEGER NOT NULL,           -- the last entry that was sorted by task
    epoch      INTEGER NOT NULL,           -- of the sender's lease: a former sender writes nothing any more
    sender     TEXT,
    lent_until INTEGER NOT NULL,
    failures   INTEGER NOT NULL,           -- in a row
    next_at    INTEGER NOT NULL,           -- until then it is left alone
    error      TEXT,
    polled     TEXT,                       -- up to where its issues were read
    polled_at  INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE mirror_task (
    workspace INTEGER NOT NULL,
    mirror    TEXT    NOT NULL,
    task      TEXT    NOT NULL,            -- empty for the workspace's own entries
    heard     INTEGER NOT NULL,            -- the last entry that it is to be told
    delivered INTEGER NOT NULL,            -- the last one that it was told
    since     INTEGER NOT NULL,            -- when the first one happened that it was not told
    attempts  INTEGER NOT NULL,
    next_at   INTEGER NOT NULL,            -- until then it is left alone
    stuck     INTEGER NOT NULL,
    error     TEXT,
    far_id    TEXT,                        -- what the task is called there
    told      TEXT,                        -- what is remembered of its counterpart, as JSON
    drift     TEXT,                        -- what somebody changed there, as JSON
    PRIMARY KEY (workspace, mirror, task),
    FOREIGN KEY (workspace, mirror) REFERENCES mirror (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX mirror_task_due ON mirror_task (workspace, mirror, since) WHERE heard > delivered;
CREATE INDEX mirror_task_far ON mirror_task (workspace, mirror, far_id) WHERE far_id IS NOT NULL;
