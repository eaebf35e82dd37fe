-- Made from the migrations: UPDATE_CONTRACT=1 cargo test -p onus-store

CREATE TABLE workspace (
    id          INTEGER PRIMARY KEY,
    uid         TEXT    NOT NULL UNIQUE,
    generation  INTEGER NOT NULL,
    head        BLOB    NOT NULL,          -- last hash of the workspace's own chain
    public_key  TEXT    NOT NULL,
    anchor      TEXT,                      -- where the last checkpoint is anchored
    created_at  INTEGER NOT NULL
, name TEXT NOT NULL DEFAULT 'main', main_remote TEXT, main_branch TEXT, main_url TEXT, main_guarded INTEGER) STRICT;

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
    version     INTEGER NOT NULL, branch TEXT, probes TEXT, reason TEXT, role TEXT, lane INTEGER,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

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
    waits          INTEGER NOT NULL, exceptions TEXT, criteria TEXT, extra TEXT,       -- whether a dependency is incomplete: a hint for the queue, never a rule
    UNIQUE (workspace, id),
    FOREIGN KEY (workspace, parent) REFERENCES task (workspace, id)
) STRICT;

CREATE UNIQUE INDEX task_origin ON task (workspace, origin_ask_ref) WHERE origin_ask_ref IS NOT NULL;

CREATE INDEX task_ready ON task (workspace, priority, born) WHERE state = 'open' AND waits = 0;

CREATE INDEX task_parent ON task (workspace, parent) WHERE parent IS NOT NULL;

CREATE TABLE dependency (
    workspace   INTEGER NOT NULL,
    task        TEXT    NOT NULL,
    depends_on  TEXT    NOT NULL, excepted INTEGER NOT NULL DEFAULT 0,
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
    end_reason     TEXT, lane INTEGER, base TEXT, resting INTEGER NOT NULL DEFAULT 0, constraints TEXT,
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

CREATE TABLE note (
    seq         INTEGER PRIMARY KEY,
    workspace   INTEGER NOT NULL,
    task        TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    text        TEXT    NOT NULL, said_by TEXT, said_at INTEGER, said_key TEXT,
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

CREATE TABLE request (
    workspace   INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    fingerprint BLOB    NOT NULL,
    seq         INTEGER NOT NULL, answer TEXT,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint (
    workspace   INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    document    TEXT    NOT NULL,
    signature   BLOB    NOT NULL,
    PRIMARY KEY (workspace, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX workstation_branch ON workstation (workspace, branch)
    WHERE branch IS NOT NULL AND state <> 'retired';

CREATE TABLE probe (
    workspace   INTEGER NOT NULL,
    workstation TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    results     TEXT    NOT NULL,
    PRIMARY KEY (workspace, workstation),
    FOREIGN KEY (workspace, workstation) REFERENCES workstation (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_started ON session (workspace, started_at);

CREATE INDEX session_long ON session (workspace, started_at)
    WHERE ended_at IS NULL OR ended_at - started_at > 86400000;

CREATE INDEX session_place ON session (workspace, worker, workstation, id);

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
    cost_micros           INTEGER, turns INTEGER,
    FOREIGN KEY (workspace, task) REFERENCES task (workspace, id)
) STRICT;

CREATE INDEX session_fact_kind ON session_fact (workspace, kind, session, seq);

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

CREATE UNIQUE INDEX workspace_name ON workspace (name);

CREATE TABLE token (
    workspace   INTEGER NOT NULL REFERENCES workspace (id),
    id          TEXT    NOT NULL,          -- the public part of its text
    hash        BLOB    NOT NULL,
    kind        TEXT    NOT NULL,
    worker      TEXT,
    workstation TEXT,
    label       TEXT,
    created_by  TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER,
    used_at     INTEGER,
    PRIMARY KEY (workspace, id),
    FOREIGN KEY (workspace, worker) REFERENCES worker (workspace, handle),
    FOREIGN KEY (workspace, workstation) REFERENCES workstation (workspace, name)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX token_hash ON token (hash);

CREATE INDEX ledger_verb ON ledger (workspace, verb, at);

CREATE TABLE milestone (
    workspace   INTEGER NOT NULL REFERENCES workspace (id),
    name        TEXT    NOT NULL,
    title       TEXT,
    sprint      TEXT,
    tag         TEXT,
    parent      TEXT,
    born        INTEGER NOT NULL,          -- the entry that added it
    closed      INTEGER,                   -- the entry that closed it
    fingerprint BLOB, target TEXT,                      -- of what was verified then
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

CREATE INDEX task_queue ON task (workspace, priority, born) WHERE state <> 'complete' AND state <> 'dropped';

CREATE TABLE clone (
    workspace INTEGER NOT NULL REFERENCES workspace (id),
    id        TEXT    NOT NULL,
    host      TEXT    NOT NULL,
    path      TEXT    NOT NULL,            -- its git directory
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE output (
    workspace INTEGER NOT NULL,
    session   INTEGER NOT NULL REFERENCES session (id),
    position  INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    text      TEXT    NOT NULL,
    PRIMARY KEY (workspace, session, position)
) STRICT;

CREATE TABLE word (
    workspace INTEGER NOT NULL,
    word      TEXT    NOT NULL,
    seq       INTEGER NOT NULL,       -- the ledger entry that said it
    born      INTEGER NOT NULL,       -- of the task
    PRIMARY KEY (workspace, word, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE word_upto (
    workspace INTEGER NOT NULL PRIMARY KEY,
    seq       INTEGER NOT NULL
) STRICT;

CREATE INDEX task_ended ON task (workspace, state, archived, born) WHERE state IN ('complete', 'dropped');

CREATE INDEX task_sprint ON task (workspace, sprint) WHERE sprint IS NOT NULL;

CREATE TABLE saved_view (
    workspace INTEGER NOT NULL REFERENCES workspace (id),
    name      TEXT    NOT NULL,
    query     TEXT    NOT NULL,          -- a JSON object of words
    saved     INTEGER NOT NULL,          -- the entry that says so
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 18;
