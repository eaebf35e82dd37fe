-- Onus, schema 15: what a search goes by.

-- Which words a task's texts have. Made from the tasks and their notes by whoever searches, and no part of the record: it can
-- be emptied at any time.
CREATE TABLE word (
    workspace INTEGER NOT NULL,
    word      TEXT    NOT NULL,
    seq       INTEGER NOT NULL,       -- the ledger entry that said it
    born      INTEGER NOT NULL,       -- of the task
    PRIMARY KEY (workspace, word, seq)
) STRICT, WITHOUT ROWID;

-- How far the record was read for it.
CREATE TABLE word_upto (
    workspace INTEGER NOT NULL PRIMARY KEY,
    seq       INTEGER NOT NULL
) STRICT;

-- What has ended, by where it ended and its age.
CREATE INDEX task_ended ON task (workspace, state, archived, born) WHERE state IN ('complete', 'dropped');
