-- Onus, schema 10: the clones of the repository and the main branch that counts for all of them; which commits there are whose
-- task's; whose lane a worktree is.

ALTER TABLE workspace ADD COLUMN main_remote TEXT COLLATE "C";  -- the main of record; nothing: the local main branch
ALTER TABLE workspace ADD COLUMN main_branch TEXT COLLATE "C";
ALTER TABLE workspace ADD COLUMN main_url TEXT COLLATE "C";
ALTER TABLE workspace ADD COLUMN main_guarded BIGINT;

ALTER TABLE workstation ADD COLUMN role TEXT COLLATE "C";
ALTER TABLE workstation ADD COLUMN lane BIGINT;

CREATE TABLE clone (
    workspace BIGINT NOT NULL REFERENCES workspace (id),
    id        TEXT   COLLATE "C" NOT NULL,
    host      TEXT   COLLATE "C" NOT NULL,
    path      TEXT   COLLATE "C" NOT NULL,         -- its git directory
    PRIMARY KEY (workspace, id)
);

-- Which entry says that a commit of the main of record is a task's.
CREATE TABLE landed (
    workspace BIGINT NOT NULL,
    commit_id TEXT   COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    task      TEXT   COLLATE "C" NOT NULL,
    epoch     BIGINT NOT NULL,
    PRIMARY KEY (workspace, commit_id, seq),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
);

CREATE INDEX landed_task ON landed (workspace, task);

-- Earlier entries name the last commit only.
INSERT INTO landed (workspace, commit_id, seq, task, epoch)
    SELECT workspace, data::json ->> 'commit', seq, task, epoch FROM ledger WHERE verb = 'merged';
