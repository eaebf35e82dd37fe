-- Onus, schema 12: what runs print.

-- Pieces of a session's output: the first ones and the last ones, each at its place in the whole, in bytes.
CREATE TABLE output (
    workspace BIGINT NOT NULL,
    session   BIGINT NOT NULL,
    position  BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    text      TEXT   COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, session, position),
    FOREIGN KEY (workspace, session) REFERENCES session (workspace, id)
);
