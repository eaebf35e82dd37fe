-- Onus, schema 11: acceptance criteria, what came with a task from another system, and who said something there.

ALTER TABLE task ADD COLUMN criteria TEXT;              -- prose that a reviewer ticks off
ALTER TABLE task ADD COLUMN extra TEXT;                 -- a JSON object: fields of another system

ALTER TABLE note ADD COLUMN said_by TEXT;               -- its author elsewhere; nothing: said here
ALTER TABLE note ADD COLUMN said_at INTEGER;
ALTER TABLE note ADD COLUMN said_key TEXT;              -- what it is called there
