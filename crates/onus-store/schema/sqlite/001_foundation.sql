-- Onus, schema 1. Every table leads with the workspace; times are milliseconds; digests are 32 bytes.

CREATE TABLE workspace (
    id          INTEGER PRIMARY KEY,
    uid         TEXT    NOT NULL UNIQUE,
    generation  INTEGER NOT NULL,
    head        BLOB    NOT NULL,          -- last hash of the workspace's own chain
    public_key  TEXT    NOT NULL,
    anchor      TEXT,                      -- where the last checkpoint is anchored
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE project (
    workspace   INTEGER NOT NULL REFERENCES workspace (id),
    key         TEXT    NOT NULL,
    last_number INTEGER NOT NULL,
    born        INTEGER NOT NULL,          -- the ledger entry that added it; the first one is the default
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
    workspace   INTEGER NOT NULL REFERENCES workspace (id),
    handle      TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    tier        TEXT,
    role        TEXT,
    state       TEXT    NOT NULL,
    tz          TEXT    NOT NULL,
    PRIMARY KEY (workspace, handle)
) STRICT, WITHOUT ROWID;

CREATE TABLE workstation (
    workspace   INTEGER NOT NULL REFERENCES workspace (id),
    name        TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    path        TEXT,
    state       TEXT    NOT NULL,
    lifecycle   TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

-- The one mutable row that owns a unit of work.
CREATE TABLE task (
    born           INTEGER PRIMARY KEY,    -- the ledger entry that added it
    workspace      INTEGER NOT NULL REFERENCES workspace (id),
    id             TEXT    NOT NULL,
    uid            TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    body           TEXT,
    type           TEXT,
    kind           TEXT    NOT NULL,
    state          TEXT    NOT NULL,
    priority       INTEGER NOT NULL,
    risk           TEXT    NOT NULL,
    role           TEXT,
    lane           INTEGER,
    sprint         TEXT,
    tags           TEXT,
    scope          TEXT,
    parent         TEXT,
    merge_order    INTEGER,
    origin_ask_ref TEXT,
    checks         TEXT,
    blocker        TEXT,
    archived       INTEGER NOT NULL,
    epoch          INTEGER NOT NULL,
    lease_id       BLOB,                   -- the fence: only its holder knows it
    version        INTEGER NOT NULL,       -- the length of its chain
    head           BLOB    NOT NULL,       -- the last hash of its chain
    created_by     TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    closed_by      TEXT,
    closed_at      INTEGER,
    forced         INTEGER NOT NULL,
    waits          INTEGER NOT NULL,       -- whether a dependency is incomplete: a hint for the queue, never a rule
    UNIQUE (workspace, id),
    FOREIGN KEY (workspace, parent) REFERENCES task (workspace, id)
) STRICT;

CREATE UNIQUE INDEX task_origin ON task (workspace, origin_ask_ref) WHERE origin_ask_ref IS NOT NULL;
CREATE INDEX task_queue ON task (workspace, priority, born) WHERE state IN ('open', 'in_progress', 'blocked');
CREATE INDEX task_ready ON task (workspace, priority, born) WHERE state = 'open' AND waits = 0;
CREATE INDEX task_parent ON task (workspace, parent) WHERE parent IS NOT NULL;

CREATE TABLE dependency (
    workspace   INTEGER NOT NULL,
    task        TEXT    NOT NULL,
    depends_on  TEXT    NOT NULL,
    PRIMARY KEY (workspace, task, depends_on),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id),
    FOREIGN KEY (workspace, depends_on) REFERENCES task (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX dependency_reverse ON dependency (workspace, depends_on);

CREATE TABLE assignment (
    workspace      INTEGER NOT NULL,
    task           TEXT    NOT NULL,
    epoch          INTEGER NOT NULL,
    assignee       TEXT    NOT NULL,
    tier           TEXT,
    workstation    TEXT    NOT NULL,
    lease_id       BLOB    NOT NULL,
    ttl_ms         INTEGER NOT NULL,
    assigned_at    INTEGER NOT NULL,
    renewed_at     INTEGER NOT NULL,
    tick           TEXT    NOT NULL,       -- the clock reading that decides expiry
    renewals       INTEGER NOT NULL,
    handoff_reason TEXT,
    forced         INTEGER NOT NULL,
    route          TEXT,
    ended_at       INTEGER,
    end_reason     TEXT,
    PRIMARY KEY (workspace, task, epoch),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id),
    FOREIGN KEY (workspace, assignee) REFERENCES worker (workspace, handle),
    FOREIGN KEY (workspace, workstation) REFERENCES workstation (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX assignment_live ON assignment (workspace, workstation) WHERE ended_at IS NULL;

CREATE TABLE session (
    id          INTEGER PRIMARY KEY,       -- the ledger entry that started it
    workspace   INTEGER NOT NULL,
    task        TEXT    NOT NULL,
    epoch       INTEGER NOT NULL,
    worker      TEXT    NOT NULL,
    workstation TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    end_reason  TEXT,
    FOREIGN KEY (workspace, task, epoch) REFERENCES assignment (workspace, task, epoch)
) STRICT;

CREATE INDEX session_task ON session (workspace, task);
CREATE INDEX session_worker ON session (workspace, worker, started_at);

-- Who wrote it and when is the ledger entry's to say.
CREATE TABLE note (
    seq         INTEGER PRIMARY KEY,
    workspace   INTEGER NOT NULL,
    task        TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT;

CREATE INDEX note_task ON note (workspace, task);

CREATE TABLE ledger (
    seq         INTEGER PRIMARY KEY,
    workspace   INTEGER NOT NULL,
    task        TEXT,
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    workstation TEXT,
    epoch       INTEGER NOT NULL,
    verb        TEXT    NOT NULL,
    data        TEXT    NOT NULL,
    prev        BLOB    NOT NULL,
    hash        BLOB    NOT NULL,
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT;

CREATE UNIQUE INDEX ledger_chain ON ledger (workspace, task, prev);
CREATE UNIQUE INDEX ledger_workspace_chain ON ledger (workspace, prev) WHERE task IS NULL;

-- Which entry a request led to: repeating the request gives the same answer.
CREATE TABLE request (
    workspace   INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    fingerprint BLOB    NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint (
    workspace   INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    document    TEXT    NOT NULL,
    signature   BLOB    NOT NULL,
    PRIMARY KEY (workspace, seq)
) STRICT, WITHOUT ROWID;
