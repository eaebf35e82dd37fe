-- Onus, schema 10: the clones of the repository and the main branch that counts for all of them; which commits there are whose
-- task's; whose lane a worktree is.

ALTER TABLE workspace ADD COLUMN main_remote TEXT;      -- the main of record; nothing: the local main branch
ALTER TABLE workspace ADD COLUMN main_branch TEXT;
ALTER TABLE workspace ADD COLUMN main_url TEXT;
ALTER TABLE workspace ADD COLUMN main_guarded INTEGER;

ALTER TABLE workstation ADD COLUMN role TEXT;
ALTER TABLE workstation ADD COLUMN lane INTEGER;

CREATE TABLE clone (
    workspace INTEGER NOT NULL REFERENCES workspace (id),
    id        TEXT    NOT NULL,
    host      TEXT    NOT NULL,
    path      TEXT    NOT NULL,            -- its git directory
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- Which entry says that a commit of the main of record is a task's.
CREATE TABLE landed (
    workspace INTEGER NOT NULL,
    commit_id TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    task      TEXT    NOT NULL,
    epoch     INTEGER NOT NULL,
    PRIMARY KEY (workspace, commit_id, seq),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX landed_task ON landed (workspace, task);

-- Earlier entries name the last commit only.
INSERT INTO landed (workspace, commit_id, seq, task, epoch)
    SELECT workspace, json_extract(data, '$.commit'), seq, task, epoch FROM ledger WHERE verb = 'merged';
