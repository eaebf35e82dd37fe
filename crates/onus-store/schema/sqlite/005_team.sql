-- Onus, schema 5: the team. A store may hold several workspaces, each under its name; tokens prove who calls over a network.

ALTER TABLE workspace ADD COLUMN name TEXT NOT NULL DEFAULT 'main';

CREATE UNIQUE INDEX workspace_name ON workspace (name);

-- Only the hash of a token's text is kept. When it was used last is an observation, and no part of the record.
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
