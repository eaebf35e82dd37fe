-- Onus, schema 15: what a search goes by.

-- Which words a task's texts have. Made from the tasks and their notes by whoever searches, and no part of the record: it can
-- be emptied at any time.
CREATE TABLE word (
    workspace BIGINT NOT NULL,
    word      TEXT   COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,       -- the ledger entry that said it
    born      BIGINT NOT NULL,       -- of the task
    PRIMARY KEY (workspace, word, seq)
);

-- How far the record was read for it.
CREATE TABLE word_upto (
    workspace BIGINT NOT NULL PRIMARY KEY,
    seq       BIGINT NOT NULL
);

-- What has ended, by where it ended and its age.
CREATE INDEX task_ended ON task (workspace, state, archived, born) WHERE state IN ('complete', 'dropped');
