-- Onus, schema 6: reports ask what happened when. Without this they would read the whole record.

CREATE INDEX ledger_verb ON ledger (workspace, verb, at);
