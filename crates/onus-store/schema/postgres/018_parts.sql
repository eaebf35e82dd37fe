-- Onus, schema 18: a task waits for its slices as it does for its dependencies.

UPDATE task SET waits = 1 WHERE waits = 0 AND EXISTS (SELECT 1 FROM task p WHERE p.workspace = task.workspace
    AND p.parent = task.id AND p.state NOT IN ('complete', 'dropped'));
