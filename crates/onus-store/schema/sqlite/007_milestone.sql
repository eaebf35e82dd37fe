-- Onus, schema 7: milestones. They refer to their tasks, by id or by what these share; who added and closed one is in the ledger.

CREATE TABLE milestone (
    workspace   INTEGER NOT NULL REFERENCES workspace (id),
    name        TEXT    NOT NULL,
    title       TEXT,
    sprint      TEXT,
    tag         TEXT,
    parent      TEXT,
    born        INTEGER NOT NULL,          -- the entry that added it
    closed      INTEGER,                   -- the entry that closed it
    fingerprint BLOB,                      -- of what was verified then
    PRIMARY KEY (workspace, name),
    FOREIGN KEY (workspace, parent) REFERENCES task (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE milestone_task (
    workspace INTEGER NOT NULL,
    milestone TEXT    NOT NULL,
    task      TEXT    NOT NULL,
    PRIMARY KEY (workspace, milestone, task),
    FOREIGN KEY (workspace, milestone) REFERENCES milestone (workspace, name),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT, WITHOUT ROWID;
