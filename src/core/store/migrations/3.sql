-- Version 2 to 3. New: limits per minute, breakers, fair share.

ALTER TABLE vendors ADD COLUMN unproven_after INTEGER NOT NULL DEFAULT 0;

ALTER TABLE rate_holds ADD COLUMN waiting INTEGER;
ALTER TABLE rate_holds ADD COLUMN next_start REAL;

ALTER TABLE jobs ADD COLUMN prompt_tokens INTEGER NOT NULL DEFAULT 0 CHECK (prompt_tokens >= 0);
ALTER TABLE jobs ADD COLUMN output_tokens INTEGER CHECK (output_tokens >= 0);
-- What jobs of before ask for is not known: their bytes alone count.
UPDATE jobs SET prompt_tokens = (SELECT (length(r.body) + 3) / 4 FROM requests r
    WHERE r.job_id = jobs.job_id)
  WHERE state IN ('queued', 'retrying', 'dead_lettered')
    AND EXISTS (SELECT 1 FROM requests r WHERE r.job_id = jobs.job_id);

CREATE TABLE rate_windows (
  scope       TEXT NOT NULL CHECK (scope IN ('vendor', 'model', 'tenant')),
  name        TEXT NOT NULL,
  unit        TEXT NOT NULL CHECK (unit IN ('requests', 'tokens')),
  level       REAL NOT NULL,
  at          INTEGER NOT NULL,
  recent      TEXT NOT NULL,
  reported    INTEGER,
  reported_at INTEGER,
  PRIMARY KEY (scope, name, unit)
) STRICT, WITHOUT ROWID;

CREATE TABLE vendor_pace (
  vendor TEXT NOT NULL,
  model  TEXT NOT NULL,
  share  REAL NOT NULL CHECK (share > 0 AND share <= 1),
  at     INTEGER NOT NULL,
  PRIMARY KEY (vendor, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE breakers (
  vendor     TEXT NOT NULL,
  model      TEXT NOT NULL,
  open_until INTEGER,
  streak     INTEGER NOT NULL,
  probes_ok  INTEGER NOT NULL,
  recent     TEXT NOT NULL,
  PRIMARY KEY (vendor, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE tenant_shares (
  tenant    TEXT PRIMARY KEY NOT NULL,
  served_at INTEGER NOT NULL,
  finish    REAL NOT NULL
) STRICT, WITHOUT ROWID;
