-- Onus, schema 12: what runs print.

-- Pieces of a session's output: the first ones and the last ones, each at its place in the whole, in bytes.
CREATE TABLE output (
    workspace INTEGER NOT NULL,
    session   INTEGER NOT NULL REFERENCES session (id),
    position  INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    text      TEXT    NOT NULL,
    PRIMARY KEY (workspace, session, position)
) STRICT;
