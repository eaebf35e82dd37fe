-- Onus, schema 5, as a whole: the first that PostgreSQL has. Its tables and columns are those of SQLite at the same number.
--
-- Every key and index leads with the workspace: several share one database. Texts are compared byte by byte, as SQLite does;
-- the database's own collation would sort names differently. Times are milliseconds; digests are 32 bytes.

CREATE TABLE workspace (
    id          BIGINT  NOT NULL PRIMARY KEY,
    uid         TEXT    COLLATE "C" NOT NULL UNIQUE,
    generation  BIGINT  NOT NULL,
    head        BYTEA   NOT NULL,          -- last hash of the workspace's own chain
    public_key  TEXT    NOT NULL,
    anchor      TEXT,                      -- where the last checkpoint is anchored
    created_at  BIGINT  NOT NULL,
    -- The workspace that the connection was opened for: whoever makes it need not know its name.
    name        TEXT    COLLATE "C" NOT NULL DEFAULT current_setting('onus.workspace')
);

CREATE UNIQUE INDEX workspace_name ON workspace (name);

CREATE SEQUENCE workspace_number AS BIGINT;

CREATE TABLE project (
    workspace   BIGINT  NOT NULL REFERENCES workspace (id),
    key         TEXT    COLLATE "C" NOT NULL,
    last_number BIGINT  NOT NULL,
    born        BIGINT  NOT NULL,          -- the ledger entry that added it; the first one is the default
    PRIMARY KEY (workspace, key)
);

CREATE TABLE worker (
    workspace   BIGINT  NOT NULL REFERENCES workspace (id),
    handle      TEXT    COLLATE "C" NOT NULL,
    kind        TEXT    COLLATE "C" NOT NULL,
    tier        TEXT    COLLATE "C",
    role        TEXT    COLLATE "C",
    state       TEXT    COLLATE "C" NOT NULL,
    tz          TEXT    COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, handle)
);

CREATE TABLE workstation (
    workspace   BIGINT  NOT NULL REFERENCES workspace (id),
    name        TEXT    COLLATE "C" NOT NULL,
    kind        TEXT    COLLATE "C" NOT NULL,
    path        TEXT    COLLATE "C",
    state       TEXT    COLLATE "C" NOT NULL,
    lifecycle   TEXT    COLLATE "C" NOT NULL,
    version     BIGINT  NOT NULL,
    branch      TEXT    COLLATE "C",
    probes      TEXT    COLLATE "C",
    reason      TEXT    COLLATE "C",       -- why it is quarantined or retired
    PRIMARY KEY (workspace, name)
);

CREATE UNIQUE INDEX workstation_branch ON workstation (workspace, branch)
    WHERE branch IS NOT NULL AND state <> 'retired';

-- Only the hash of a token's text is kept. When it was used last is an observation, and no part of the record.
CREATE TABLE token (
    workspace   BIGINT  NOT NULL REFERENCES workspace (id),
    id          TEXT    COLLATE "C" NOT NULL,   -- the public part of its text
    hash        BYTEA   NOT NULL,
    kind        TEXT    COLLATE "C" NOT NULL,
    worker      TEXT    COLLATE "C",
    workstation TEXT    COLLATE "C",
    label       TEXT    COLLATE "C",
    created_by  TEXT    COLLATE "C" NOT NULL,
    created_at  BIGINT  NOT NULL,
    expires_at  BIGINT,
    revoked_at  BIGINT,
    used_at     BIGINT,
    PRIMARY KEY (workspace, id),
    FOREIGN KEY (workspace, worker) REFERENCES worker (workspace, handle),
    FOREIGN KEY (workspace, workstation) REFERENCES workstation (workspace, name)
);

CREATE UNIQUE INDEX token_hash ON token (hash);

-- What the probes of a workstation said last. That it flipped is in the ledger.
CREATE TABLE probe (
    workspace   BIGINT  NOT NULL,
    workstation TEXT    COLLATE "C" NOT NULL,
    at          BIGINT  NOT NULL,
    results     TEXT    COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, workstation),
    FOREIGN KEY (workspace, workstation) REFERENCES workstation (workspace, name)
);

-- The one mutable row that owns a unit of work. Pages keep room, so that a claim rewrites a row where it is.
CREATE TABLE task (
    workspace      BIGINT  NOT NULL REFERENCES workspace (id),
    born           BIGINT  NOT NULL,       -- the ledger entry that added it
    id             TEXT    COLLATE "C" NOT NULL,
    uid            TEXT    COLLATE "C" NOT NULL,
    title          TEXT    COLLATE "C" NOT NULL,
    body           TEXT    COLLATE "C",
    type           TEXT    COLLATE "C",
    kind           TEXT    COLLATE "C" NOT NULL,
    state          TEXT    COLLATE "C" NOT NULL,
    priority       BIGINT  NOT NULL,
    risk           TEXT    COLLATE "C" NOT NULL,
    role           TEXT    COLLATE "C",
    lane           BIGINT,
    sprint         TEXT    COLLATE "C",
    tags           TEXT    COLLATE "C",
    scope          TEXT    COLLATE "C",
    parent         TEXT    COLLATE "C",
    merge_order    BIGINT,
    origin_ask_ref TEXT    COLLATE "C",
    checks         TEXT    COLLATE "C",
    blocker        TEXT    COLLATE "C",
    archived       BIGINT  NOT NULL,
    epoch          BIGINT  NOT NULL,
    lease_id       BYTEA,                  -- the fence: only its holder knows it
    version        BIGINT  NOT NULL,       -- the length of its chain
    head           BYTEA   NOT NULL,       -- the last hash of its chain
    created_by     TEXT    COLLATE "C" NOT NULL,
    created_at     BIGINT  NOT NULL,
    updated_at     BIGINT  NOT NULL,
    closed_by      TEXT    COLLATE "C",
    closed_at      BIGINT,
    forced         BIGINT  NOT NULL,
    waits          BIGINT  NOT NULL,       -- whether a dependency is incomplete: a hint for the queue, never a rule
    exceptions     TEXT    COLLATE "C",    -- dependencies to be stepped over, and who approved it
    PRIMARY KEY (workspace, born),
    UNIQUE (workspace, id),
    FOREIGN KEY (workspace, parent) REFERENCES task (workspace, id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX task_origin ON task (workspace, origin_ask_ref) WHERE origin_ask_ref IS NOT NULL;
CREATE INDEX task_queue ON task (workspace, priority, born) WHERE state IN ('open', 'in_progress', 'blocked');
CREATE INDEX task_ready ON task (workspace, priority, born) WHERE state = 'open' AND waits = 0;
CREATE INDEX task_parent ON task (workspace, parent) WHERE parent IS NOT NULL;

CREATE TABLE dependency (
    workspace   BIGINT  NOT NULL,
    task        TEXT    COLLATE "C" NOT NULL,
    depends_on  TEXT    COLLATE "C" NOT NULL,
    excepted    BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, task, depends_on),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id),
    FOREIGN KEY (workspace, depends_on) REFERENCES task (workspace, id)
);

CREATE INDEX dependency_reverse ON dependency (workspace, depends_on);

CREATE TABLE assignment (
    workspace      BIGINT  NOT NULL,
    task           TEXT    COLLATE "C" NOT NULL,
    epoch          BIGINT  NOT NULL,
    assignee       TEXT    COLLATE "C" NOT NULL,
    tier           TEXT    COLLATE "C",
    workstation    TEXT    COLLATE "C" NOT NULL,
    lease_id       BYTEA   NOT NULL,
    ttl_ms         BIGINT  NOT NULL,
    assigned_at    BIGINT  NOT NULL,
    renewed_at     BIGINT  NOT NULL,
    tick           TEXT    COLLATE "C" NOT NULL,   -- the clock reading that decides expiry
    renewals       BIGINT  NOT NULL,
    handoff_reason TEXT    COLLATE "C",
    forced         BIGINT  NOT NULL,
    route          TEXT    COLLATE "C",
    ended_at       BIGINT,
    end_reason     TEXT    COLLATE "C",
    lane           BIGINT,
    base           TEXT    COLLATE "C",            -- the commit that the workstation stood at
    resting        BIGINT  NOT NULL DEFAULT 0,     -- the holder has stopped its session
    PRIMARY KEY (workspace, task, epoch),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id),
    FOREIGN KEY (workspace, assignee) REFERENCES worker (workspace, handle),
    FOREIGN KEY (workspace, workstation) REFERENCES workstation (workspace, name)
) WITH (fillfactor = 90);

CREATE UNIQUE INDEX assignment_live ON assignment (workspace, workstation) WHERE ended_at IS NULL;

CREATE TABLE session (
    workspace   BIGINT  NOT NULL,
    id          BIGINT  NOT NULL,          -- the ledger entry that started it
    task        TEXT    COLLATE "C" NOT NULL,
    epoch       BIGINT  NOT NULL,
    worker      TEXT    COLLATE "C" NOT NULL,
    workstation TEXT    COLLATE "C" NOT NULL,
    started_at  BIGINT  NOT NULL,
    ended_at    BIGINT,
    end_reason  TEXT    COLLATE "C",
    PRIMARY KEY (workspace, id),
    FOREIGN KEY (workspace, task, epoch) REFERENCES assignment (workspace, task, epoch)
);

CREATE INDEX session_task ON session (workspace, task);
CREATE INDEX session_worker ON session (workspace, worker, started_at);
-- When sessions began; those longer than a day, and those that run, are few and have an index of their own, so that a
-- period is found without reading all that came before it.
CREATE INDEX session_started ON session (workspace, started_at);
CREATE INDEX session_long ON session (workspace, started_at)
    WHERE ended_at IS NULL OR ended_at - started_at > 86400000;
-- What a worker did last in a workstation.
CREATE INDEX session_place ON session (workspace, worker, workstation, id);

-- What was said about a session afterwards: one row for each entry that says so. The last correction counts, and the
-- last usage under each key.
CREATE TABLE session_fact (
    workspace             BIGINT  NOT NULL,
    seq                   BIGINT  NOT NULL,
    task                  TEXT    COLLATE "C" NOT NULL,
    session               BIGINT  NOT NULL,
    kind                  TEXT    COLLATE "C" NOT NULL,
    started_at            BIGINT,
    ended_at              BIGINT,
    key                   TEXT    COLLATE "C",
    source                TEXT    COLLATE "C",
    model                 TEXT    COLLATE "C",
    input_tokens          BIGINT,
    output_tokens         BIGINT,
    cache_read_tokens     BIGINT,
    cache_creation_tokens BIGINT,
    cost_micros           BIGINT,
    PRIMARY KEY (workspace, seq),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id),
    FOREIGN KEY (workspace, session) REFERENCES session (workspace, id)
);

CREATE INDEX session_fact_kind ON session_fact (workspace, kind, session, seq);

-- Periods that a person approved: whose, which days, and what was approved by its fingerprint.
CREATE TABLE approval (
    workspace   BIGINT  NOT NULL,
    seq         BIGINT  NOT NULL,
    worker      TEXT    COLLATE "C" NOT NULL,
    first_day   TEXT    COLLATE "C" NOT NULL,
    last_day    TEXT    COLLATE "C" NOT NULL,
    fingerprint BYTEA   NOT NULL,
    PRIMARY KEY (workspace, seq),
    FOREIGN KEY (workspace, worker) REFERENCES worker (workspace, handle)
);

CREATE INDEX approval_worker ON approval (workspace, worker, first_day);

-- Who wrote it and when is the ledger entry's to say.
CREATE TABLE note (
    workspace   BIGINT  NOT NULL,
    seq         BIGINT  NOT NULL,
    task        TEXT    COLLATE "C" NOT NULL,
    kind        TEXT    COLLATE "C" NOT NULL,
    text        TEXT    COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, seq),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
);

CREATE INDEX note_task ON note (workspace, task);

-- What was shown, and what reviewers said. Who and when is the ledger entry's to say.
CREATE TABLE evidence (
    workspace     BIGINT  NOT NULL,
    seq           BIGINT  NOT NULL,
    task          TEXT    COLLATE "C" NOT NULL,
    check_id      TEXT    COLLATE "C" NOT NULL,
    verdict       TEXT    COLLATE "C" NOT NULL,
    exit          BIGINT,
    signal        BIGINT,
    took_ms       BIGINT  NOT NULL,
    commit_id     TEXT    COLLATE "C",
    dirty         BIGINT  NOT NULL,
    output        TEXT    COLLATE "C" NOT NULL,   -- the beginning and the end of it
    output_length BIGINT  NOT NULL,
    output_sha256 TEXT    COLLATE "C" NOT NULL,
    environment   TEXT    COLLATE "C" NOT NULL,
    sandbox       TEXT    COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, seq),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
);

CREATE INDEX evidence_task ON evidence (workspace, task);

CREATE TABLE review (
    workspace      BIGINT  NOT NULL,
    seq            BIGINT  NOT NULL,
    task           TEXT    COLLATE "C" NOT NULL,
    verdict        TEXT    COLLATE "C" NOT NULL,
    classification TEXT    COLLATE "C" NOT NULL,
    commit_id      TEXT    COLLATE "C",
    note           TEXT    COLLATE "C",
    PRIMARY KEY (workspace, seq),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
);

CREATE INDEX review_task ON review (workspace, task);

CREATE TABLE ledger (
    workspace   BIGINT  NOT NULL,
    seq         BIGINT  NOT NULL,
    task        TEXT    COLLATE "C",
    at          BIGINT  NOT NULL,
    actor       TEXT    COLLATE "C" NOT NULL,
    workstation TEXT    COLLATE "C",
    epoch       BIGINT  NOT NULL,
    verb        TEXT    COLLATE "C" NOT NULL,
    data        TEXT    COLLATE "C" NOT NULL,
    prev        BYTEA   NOT NULL,
    hash        BYTEA   NOT NULL,
    PRIMARY KEY (workspace, seq),
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
);

CREATE UNIQUE INDEX ledger_chain ON ledger (workspace, task, prev);
CREATE UNIQUE INDEX ledger_workspace_chain ON ledger (workspace, prev) WHERE task IS NULL;

-- Which entry a request led to: repeating the request gives the same answer.
CREATE TABLE request (
    workspace   BIGINT  NOT NULL,
    id          BYTEA   NOT NULL,
    fingerprint BYTEA   NOT NULL,
    seq         BIGINT  NOT NULL,
    PRIMARY KEY (workspace, id)
);

CREATE TABLE checkpoint (
    workspace   BIGINT  NOT NULL,
    seq         BIGINT  NOT NULL,
    document    TEXT    COLLATE "C" NOT NULL,
    signature   BYTEA   NOT NULL,
    PRIMARY KEY (workspace, seq)
);
