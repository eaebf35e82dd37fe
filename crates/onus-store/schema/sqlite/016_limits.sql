-- Answers of a model, where an agent's records tell them.
ALTER TABLE session_fact ADD COLUMN turns INTEGER;
-- What a sprint has used up is added up from its tasks.
CREATE INDEX task_sprint ON task (workspace, sprint) WHERE sprint IS NOT NULL;
