-- Onus, schema 12: the outbox. A mirror hears the ledger by a cursor, so nothing is written for it when something happens; what is
-- kept here is how far it has been told of each task, and what became of that.

CREATE TABLE mirror (
    workspace  BIGINT  NOT NULL REFERENCES workspace (id),
    name       TEXT COLLATE "C" NOT NULL,
    heard      BIGINT  NOT NULL,           -- the last entry that was sorted by task
    epoch      BIGINT  NOT NULL,           -- of the sender's lease: a former sender writes nothing any more
    sender     TEXT COLLATE "C",
    lent_until BIGINT  NOT NULL,
    failures   BIGINT  NOT NULL,           -- in a row
    next_at    BIGINT  NOT NULL,           -- until then it is left alone
    error      TEXT COLLATE "C",
    polled     TEXT COLLATE "C",                       -- up to where its issues were read
    polled_at  BIGINT  NOT NULL,
    PRIMARY KEY (workspace, name)
);

CREATE TABLE mirror_task (
    workspace BIGINT  NOT NULL,
    mirror    TEXT COLLATE "C" NOT NULL,
    task      TEXT COLLATE "C" NOT NULL,            -- empty for the workspace's own entries
    heard     BIGINT  NOT NULL,            -- the last entry that it is to be told
    delivered BIGINT  NOT NULL,            -- the last one that it was told
    since     BIGINT  NOT NULL,            -- when the first one happened that it was not told
    attempts  BIGINT  NOT NULL,
    next_at   BIGINT  NOT NULL,            -- until then it is left alone
    stuck     BIGINT  NOT NULL,
    error     TEXT COLLATE "C",
    far_id    TEXT COLLATE "C",                        -- what the task is called there
    told      TEXT COLLATE "C",                        -- what is remembered of its counterpart, as JSON
    drift     TEXT COLLATE "C",                        -- what somebody changed there, as JSON
    PRIMARY KEY (workspace, mirror, task),
    FOREIGN KEY (workspace, mirror) REFERENCES mirror (workspace, name)
);

CREATE INDEX mirror_task_due ON mirror_task (workspace, mirror, since) WHERE heard > delivered;
CREATE INDEX mirror_task_far ON mirror_task (workspace, mirror, far_id) WHERE far_id IS NOT NULL;
