-- Onus, schema 2: where work goes, and what must hold there.

ALTER TABLE workstation ADD COLUMN branch TEXT;
ALTER TABLE workstation ADD COLUMN probes TEXT;
ALTER TABLE workstation ADD COLUMN reason TEXT;         -- why it is quarantined or retired

CREATE UNIQUE INDEX workstation_branch ON workstation (workspace, branch)
    WHERE branch IS NOT NULL AND state <> 'retired';

-- What the probes of a workstation said last. That it flipped is in the ledger.
CREATE TABLE probe (
    workspace   INTEGER NOT NULL,
    workstation TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    results     TEXT    NOT NULL,
    PRIMARY KEY (workspace, workstation),
    FOREIGN KEY (workspace, workstation) REFERENCES workstation (workspace, name)
) STRICT, WITHOUT ROWID;

ALTER TABLE task ADD COLUMN exceptions TEXT;            -- dependencies to be stepped over, and who approved it
ALTER TABLE dependency ADD COLUMN excepted INTEGER NOT NULL DEFAULT 0;

ALTER TABLE assignment ADD COLUMN lane INTEGER;
ALTER TABLE assignment ADD COLUMN base TEXT;            -- the commit that the workstation stood at
