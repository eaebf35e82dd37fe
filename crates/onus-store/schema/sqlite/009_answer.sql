-- Onus, schema 9: the answer to a change of the workspace itself, for whoever asks for the same once more. The answer to a command
-- is told from its task's entries and is not kept.

ALTER TABLE request ADD COLUMN answer TEXT;
