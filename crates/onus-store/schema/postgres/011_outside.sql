-- Onus, schema 11: acceptance criteria, what came with a task from another system, and who said something there.

ALTER TABLE task ADD COLUMN criteria TEXT COLLATE "C";  -- prose that a reviewer ticks off
ALTER TABLE task ADD COLUMN extra TEXT COLLATE "C";     -- a JSON object: fields of another system

ALTER TABLE note ADD COLUMN said_by TEXT COLLATE "C";   -- its author elsewhere; nothing: said here
ALTER TABLE note ADD COLUMN said_at BIGINT;
ALTER TABLE note ADD COLUMN said_key TEXT COLLATE "C";  -- what it is called there
