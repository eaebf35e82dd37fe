-- Onus, schema 7: milestones. They refer to their tasks, by id or by what these share; who added and closed one is in the ledger.

CREATE TABLE milestone (
    workspace   BIGINT NOT NULL REFERENCES workspace (id),
    name        TEXT   COLLATE "C" NOT NULL,
    title       TEXT   COLLATE "C",
    sprint      TEXT   COLLATE "C",
    tag         TEXT   COLLATE "C",
    parent      TEXT   COLLATE "C",
    born        BIGINT NOT NULL,          -- the entry that added it
    closed      BIGINT,                   -- the entry that closed it
    fingerprint BYTEA,                    -- of what was verified then
    PRIMARY KEY (workspace, name),
    FOREIGN KEY (workspace, parent) REFERENCES task (workspace, id)
);

CREATE TABLE milestone_task (
    workspace BIGINT NOT NULL,
    milestone TEXT   COLLATE "C" NOT NULL,
    task      TEXT   COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, milestone, task),
    FOREIGN KEY (workspace, milestone) REFERENCES milestone (workspace, name),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
);
