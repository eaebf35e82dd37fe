-- Onus, schema 8: what has not ended, said in two comparisons. A list of three words is a table of its own to SQLite, which it
-- built twice for every task that changed.

DROP INDEX task_queue;
CREATE INDEX task_queue ON task (workspace, priority, born) WHERE state <> 'complete' AND state <> 'dropped';
