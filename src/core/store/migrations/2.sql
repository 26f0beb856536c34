-- Version 1 to 2. New: files of requests, answers that several jobs share, edited requests, money.

ALTER TABLE submissions ADD COLUMN batch_id INTEGER;
ALTER TABLE submissions ADD COLUMN line INTEGER;

CREATE TABLE batches (
  batch_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant         TEXT NOT NULL,
  client_key     TEXT,
  fingerprint    BLOB NOT NULL CHECK (length(fingerprint) = 32),
  state          TEXT NOT NULL CHECK (state IN ('staging', 'loading', 'loaded')),
  stage_id       INTEGER,
  created_at     INTEGER NOT NULL,
  loaded_at      INTEGER,
  read_to        INTEGER NOT NULL DEFAULT 0,
  lines          INTEGER NOT NULL DEFAULT 0,
  created        INTEGER NOT NULL DEFAULT 0,
  existing       INTEGER NOT NULL DEFAULT 0,
  cached         INTEGER NOT NULL DEFAULT 0,
  rejected       INTEGER NOT NULL DEFAULT 0,
  correlation_id TEXT NOT NULL,
  actor          TEXT NOT NULL,
  CHECK ((loaded_at IS NULL) = (state <> 'loaded'))
) STRICT;
CREATE UNIQUE INDEX batches_key ON batches (tenant, client_key) WHERE client_key IS NOT NULL;
CREATE INDEX batches_unfinished ON batches (fingerprint) WHERE state <> 'loaded';

CREATE TABLE batch_lines (
  batch_id      INTEGER NOT NULL REFERENCES batches (batch_id),
  line          INTEGER NOT NULL CHECK (line >= 1),
  custom_id     TEXT NOT NULL,
  job_id        INTEGER,
  submission_id INTEGER,
  PRIMARY KEY (batch_id, line)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX batch_lines_custom_id ON batch_lines (batch_id, custom_id);
CREATE INDEX batch_lines_job ON batch_lines (batch_id, job_id);

CREATE TABLE batch_errors (
  batch_id INTEGER NOT NULL REFERENCES batches (batch_id),
  line     INTEGER NOT NULL,
  code     TEXT NOT NULL,
  message  TEXT NOT NULL,
  PRIMARY KEY (batch_id, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE result_shares (
  result_id INTEGER NOT NULL,
  job_id    INTEGER NOT NULL,
  PRIMARY KEY (result_id, job_id)
) STRICT, WITHOUT ROWID;
-- So far they had no row.
INSERT INTO result_shares (result_id, job_id)
  SELECT result_id, job_id FROM jobs WHERE result_source = 'cache' AND result_id IS NOT NULL;

CREATE TABLE usage_duplicates (
  duplicate_id INTEGER PRIMARY KEY AUTOINCREMENT,
  source       TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  event_id     TEXT NOT NULL,
  occurred_at  INTEGER NOT NULL,
  received_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE usage_conflicts (
  conflict_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  source       TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  event_id     TEXT NOT NULL,
  vendor       TEXT NOT NULL,
  model        TEXT NOT NULL,
  meter        TEXT NOT NULL,
  units        INTEGER NOT NULL,
  context_tokens INTEGER,
  unit_pico    INTEGER,
  currency     TEXT,
  occurred_at  INTEGER NOT NULL,
  received_at  INTEGER NOT NULL,
  job_ref      TEXT,
  correlation_id TEXT,
  payload_hash TEXT NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('open', 'kept', 'replaced')),
  reason       TEXT,
  actor        TEXT,
  decided_at   INTEGER,
  UNIQUE (tenant, event_id, source, payload_hash),
  CHECK ((decided_at IS NULL) = (state = 'open'))
) STRICT;

CREATE TABLE usage_pending (
  tenant   TEXT NOT NULL,
  period   INTEGER NOT NULL,
  usage_id INTEGER NOT NULL,
  why      TEXT NOT NULL CHECK (why IN ('new', 'unpriced', 'frozen')),
  PRIMARY KEY (tenant, period, usage_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE cost_state (
  name TEXT PRIMARY KEY NOT NULL,
  n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO cost_state (name, n) VALUES ('usage_seen', 0);

CREATE TABLE prices (
  price_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  vendor         TEXT NOT NULL,
  model          TEXT NOT NULL,
  meter          TEXT NOT NULL,
  currency       TEXT NOT NULL CHECK (length(currency) = 3),
  above_tokens   INTEGER NOT NULL DEFAULT 0 CHECK (above_tokens >= 0),
  unit_pico      INTEGER CHECK (unit_pico >= 0),
  effective_from INTEGER NOT NULL,
  origin         TEXT NOT NULL,
  actor          TEXT NOT NULL,
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX prices_of_model ON prices (model, meter, vendor, effective_from, price_id);
CREATE TRIGGER prices_no_update BEFORE UPDATE ON prices
BEGIN SELECT RAISE(ABORT, 'prices is append-only'); END;
CREATE TRIGGER prices_no_delete BEFORE DELETE ON prices
BEGIN SELECT RAISE(ABORT, 'prices is append-only'); END;

CREATE TABLE cost_runs (
  run_id         INTEGER PRIMARY KEY AUTOINCREMENT,
  source         TEXT NOT NULL DEFAULT '',
  call_id        TEXT NOT NULL,
  tenant         TEXT NOT NULL,
  period         INTEGER NOT NULL,
  initiator      TEXT NOT NULL CHECK (initiator IN ('daemon', 'command', 'import')),
  job_ref        TEXT,
  started_at     INTEGER NOT NULL,
  finished_at    INTEGER,
  retry_count    INTEGER NOT NULL DEFAULT 0,
  outcome        TEXT CHECK (outcome IN ('done', 'busy', 'frozen', 'failed', 'abandoned')),
  events         INTEGER NOT NULL DEFAULT 0,
  posted         INTEGER NOT NULL DEFAULT 0,
  replayed       INTEGER NOT NULL DEFAULT 0,
  conflicts      INTEGER NOT NULL DEFAULT 0,
  unpriced       INTEGER NOT NULL DEFAULT 0,
  late           INTEGER NOT NULL DEFAULT 0,
  correlation_id TEXT NOT NULL,
  actor          TEXT NOT NULL,
  CHECK (events = posted + replayed + conflicts + unpriced),
  CHECK ((finished_at IS NULL) = (outcome IS NULL))
) STRICT;
CREATE INDEX cost_runs_unit ON cost_runs (tenant, period);
CREATE INDEX cost_runs_open ON cost_runs (run_id) WHERE outcome IS NULL;

CREATE TABLE freezes (
  freeze_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant      TEXT NOT NULL,
  period_from INTEGER NOT NULL,
  period_to   INTEGER NOT NULL,
  origin      TEXT NOT NULL,
  until       INTEGER,
  reason      TEXT NOT NULL,
  actor       TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  lifted_at   INTEGER,
  lifted_by   TEXT,
  CHECK (period_from < period_to)
) STRICT;
CREATE INDEX freezes_in_force ON freezes (tenant, period_from) WHERE lifted_at IS NULL;

CREATE TABLE credit_notes (
  credit_id      INTEGER PRIMARY KEY AUTOINCREMENT,
  source         TEXT NOT NULL DEFAULT '',
  credit_note_id TEXT NOT NULL,
  tenant         TEXT NOT NULL,
  service_period INTEGER NOT NULL,
  amount_pico    INTEGER NOT NULL,
  currency       TEXT NOT NULL,
  status         TEXT NOT NULL,
  reason         TEXT NOT NULL,
  approved_by    TEXT,
  created_at     INTEGER NOT NULL,
  UNIQUE (credit_note_id, source)
) STRICT;

CREATE TABLE cost_ledger (
  entry_id        INTEGER PRIMARY KEY AUTOINCREMENT,
  source          TEXT NOT NULL DEFAULT '',
  given_id        TEXT,
  idempotency_key TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  source_type     TEXT NOT NULL,
  source_ref      TEXT NOT NULL,
  service_period  INTEGER NOT NULL,
  posting_period  INTEGER NOT NULL,
  occurred_at     INTEGER NOT NULL,
  posted_at       INTEGER NOT NULL,
  amount_pico     INTEGER NOT NULL,
  currency        TEXT NOT NULL,
  usage_id        INTEGER,
  price_id        INTEGER,
  reverses        INTEGER,
  reprices        INTEGER,
  repair_id       INTEGER,
  payload_hash    TEXT NOT NULL,
  job_id          TEXT,
  run_id          INTEGER,
  retry_count     INTEGER NOT NULL DEFAULT 0,
  correlation_id  TEXT,
  reason          TEXT,
  actor           TEXT,
  UNIQUE (idempotency_key, source),
  CHECK (service_period % 3600000 = 0 AND posting_period % 3600000 = 0)
) STRICT;
CREATE UNIQUE INDEX cost_ledger_given ON cost_ledger (given_id, source) WHERE given_id IS NOT NULL;
CREATE INDEX cost_ledger_service ON cost_ledger (tenant, service_period);
CREATE INDEX cost_ledger_posting ON cost_ledger (tenant, posting_period);
CREATE INDEX cost_ledger_origin ON cost_ledger (source_ref, tenant, source_type);
CREATE INDEX cost_ledger_reverses ON cost_ledger (reverses) WHERE reverses IS NOT NULL;
CREATE INDEX cost_ledger_reprices ON cost_ledger (reprices) WHERE reprices IS NOT NULL;
CREATE TRIGGER cost_ledger_no_update BEFORE UPDATE ON cost_ledger
BEGIN SELECT RAISE(ABORT, 'cost_ledger is append-only'); END;
CREATE TRIGGER cost_ledger_no_delete BEFORE DELETE ON cost_ledger
BEGIN SELECT RAISE(ABORT, 'cost_ledger is append-only'); END;

CREATE TABLE tenant_cost_summary (
  summary_id          INTEGER PRIMARY KEY AUTOINCREMENT,
  source              TEXT NOT NULL DEFAULT '',
  tenant              TEXT NOT NULL,
  period              INTEGER NOT NULL,
  currency            TEXT NOT NULL,
  service_total_whole INTEGER NOT NULL,
  service_total_pico  INTEGER NOT NULL,
  billed_total_whole  INTEGER,
  billed_total_pico   INTEGER,
  usage_whole         INTEGER NOT NULL DEFAULT 0,
  usage_pico          INTEGER NOT NULL DEFAULT 0,
  credit_whole        INTEGER NOT NULL DEFAULT 0,
  credit_pico         INTEGER NOT NULL DEFAULT 0,
  correction_whole    INTEGER NOT NULL DEFAULT 0,
  correction_pico     INTEGER NOT NULL DEFAULT 0,
  ledger_rows         INTEGER NOT NULL DEFAULT 0,
  events              INTEGER NOT NULL DEFAULT 0,
  watermark           INTEGER NOT NULL DEFAULT 0,
  content_hash        TEXT NOT NULL DEFAULT '',
  updated_at          INTEGER NOT NULL,
  UNIQUE (tenant, period, currency)
) STRICT;

CREATE TABLE invoices (
  invoice_key  INTEGER PRIMARY KEY AUTOINCREMENT,
  source       TEXT NOT NULL DEFAULT '',
  given_id     TEXT,
  tenant       TEXT NOT NULL,
  currency     TEXT NOT NULL,
  period_start INTEGER NOT NULL,
  period_end   INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('draft', 'held', 'issued', 'void')),
  total_whole  INTEGER NOT NULL,
  total_pico   INTEGER NOT NULL,
  rounding_pico INTEGER NOT NULL,
  lines        TEXT NOT NULL,
  held_reason  TEXT,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  issued_at    INTEGER,
  actor        TEXT NOT NULL,
  CHECK (period_start < period_end),
  CHECK ((issued_at IS NULL) = (state <> 'issued'))
) STRICT;
CREATE UNIQUE INDEX invoices_given ON invoices (given_id, source) WHERE given_id IS NOT NULL;
CREATE INDEX invoices_of_tenant ON invoices (tenant, period_start);
CREATE TRIGGER invoices_issued_no_update BEFORE UPDATE ON invoices WHEN OLD.state = 'issued'
BEGIN SELECT RAISE(ABORT, 'an issued invoice never changes'); END;
CREATE TRIGGER invoices_no_delete BEFORE DELETE ON invoices
BEGIN SELECT RAISE(ABORT, 'invoices are voided, not deleted'); END;

CREATE TABLE invoice_hours (
  tenant      TEXT NOT NULL,
  currency    TEXT NOT NULL,
  period      INTEGER NOT NULL,
  invoice_key INTEGER NOT NULL REFERENCES invoices (invoice_key),
  issued      INTEGER NOT NULL DEFAULT 0 CHECK (issued IN (0, 1)),
  PRIMARY KEY (tenant, currency, period)
) STRICT, WITHOUT ROWID;
CREATE INDEX invoice_hours_invoice ON invoice_hours (invoice_key);
CREATE TRIGGER invoice_hours_issued_no_update BEFORE UPDATE ON invoice_hours WHEN OLD.issued = 1
BEGIN SELECT RAISE(ABORT, 'an issued invoice never changes'); END;
CREATE TRIGGER invoice_hours_issued_no_delete BEFORE DELETE ON invoice_hours WHEN OLD.issued = 1
BEGIN SELECT RAISE(ABORT, 'an issued invoice never changes'); END;
CREATE TRIGGER cost_ledger_issued BEFORE INSERT ON cost_ledger
WHEN NEW.given_id IS NULL AND NEW.repair_id IS NULL AND EXISTS (
  SELECT 1 FROM invoice_hours h WHERE h.tenant = NEW.tenant AND h.currency = NEW.currency
    AND h.period = NEW.posting_period AND h.issued = 1)
BEGIN SELECT RAISE(ABORT, 'the posting period has an issued invoice'); END;
CREATE TRIGGER cost_ledger_frozen BEFORE INSERT ON cost_ledger
WHEN NEW.source_type = 'usage' AND NEW.given_id IS NULL AND NEW.repair_id IS NULL AND EXISTS (
  SELECT 1 FROM freezes f WHERE f.tenant = NEW.tenant AND f.lifted_at IS NULL
    AND (f.until IS NULL OR f.until > NEW.posted_at)
    AND ((NEW.service_period >= f.period_from AND NEW.service_period < f.period_to)
      OR (NEW.posting_period >= f.period_from AND NEW.posting_period < f.period_to)))
BEGIN SELECT RAISE(ABORT, 'the period is frozen'); END;

CREATE TABLE audit_acks (
  finding_id TEXT PRIMARY KEY NOT NULL,
  code       TEXT NOT NULL,
  tenant     TEXT NOT NULL,
  reason     TEXT NOT NULL,
  actor      TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE repairs (
  repair_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  plan_hash    TEXT NOT NULL UNIQUE,
  plan         TEXT NOT NULL,
  snapshot     TEXT NOT NULL,
  result       TEXT NOT NULL,
  actor        TEXT NOT NULL,
  applied_at   INTEGER NOT NULL
) STRICT;

-- Entries of before have their tokens in one number; hits of them avoid no known cost.
ALTER TABLE cache_entries ADD COLUMN input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cache_entries ADD COLUMN cache_read INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cache_entries ADD COLUMN cache_write_5m INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cache_entries ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cache_entries ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cache_entries ADD COLUMN price_vendor TEXT NOT NULL DEFAULT '';

CREATE TABLE cache_avoided (
  currency TEXT PRIMARY KEY NOT NULL,
  whole    INTEGER NOT NULL CHECK (whole >= 0),
  pico     INTEGER NOT NULL CHECK (pico BETWEEN 0 AND 999999999999)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_edits (
  edit_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id     INTEGER NOT NULL REFERENCES jobs (job_id),
  generation INTEGER NOT NULL,
  lane_id    INTEGER NOT NULL REFERENCES lanes (lane_id),
  endpoint   TEXT NOT NULL,
  body       BLOB NOT NULL,
  edited_at  INTEGER NOT NULL,
  actor      TEXT NOT NULL
) STRICT;
CREATE INDEX request_edits_job ON request_edits (job_id);

-- A constraint can't be changed: the table is made anew. What its ids came to goes along, so that
-- none is used twice.
CREATE TABLE job_labels_2 (
  key    TEXT NOT NULL,
  value  TEXT NOT NULL,
  job_id INTEGER NOT NULL,
  PRIMARY KEY (key, value, job_id)
) STRICT, WITHOUT ROWID;
INSERT INTO job_labels_2 (key, value, job_id)
  SELECT key, value, job_id FROM job_labels;
DROP TABLE job_labels;
ALTER TABLE job_labels_2 RENAME TO job_labels;

CREATE TABLE usage_events_2 (
  usage_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  source         TEXT NOT NULL DEFAULT '',
  tenant         TEXT NOT NULL,
  event_id       TEXT NOT NULL CHECK (length(event_id) BETWEEN 1 AND 200),
  vendor         TEXT NOT NULL DEFAULT '',
  model          TEXT NOT NULL,
  meter          TEXT NOT NULL CHECK (length(meter) BETWEEN 1 AND 32),
  units          INTEGER NOT NULL CHECK (units > 0),
  context_tokens INTEGER,
  unit_pico      INTEGER CHECK (unit_pico >= 0),
  currency       TEXT,
  occurred_at    INTEGER NOT NULL,
  received_at    INTEGER NOT NULL,
  attempt_id     INTEGER,
  job_id         INTEGER,
  job_ref        TEXT,
  correlation_id TEXT,
  payload_hash   TEXT,
  CHECK ((unit_pico IS NULL) OR (currency IS NOT NULL)),
  UNIQUE (tenant, event_id, source)
) STRICT;
INSERT INTO sqlite_sequence (name, seq)
  SELECT 'usage_events_2', seq FROM sqlite_sequence WHERE name = 'usage_events';
INSERT INTO usage_events_2 (usage_id, tenant, event_id, vendor, model, meter, units, occurred_at,
    received_at, attempt_id, job_id, correlation_id)
  SELECT usage_id, tenant, event_id, vendor, model, meter, units, occurred_at, received_at,
    attempt_id, job_id, correlation_id FROM usage_events;
DROP TABLE usage_events;
ALTER TABLE usage_events_2 RENAME TO usage_events;
CREATE INDEX usage_events_job ON usage_events (job_id) WHERE job_id IS NOT NULL;
CREATE TRIGGER usage_events_no_update BEFORE UPDATE ON usage_events
BEGIN SELECT RAISE(ABORT, 'usage_events is append-only'); END;
CREATE TRIGGER usage_events_no_delete BEFORE DELETE ON usage_events
BEGIN SELECT RAISE(ABORT, 'usage_events is append-only'); END;

CREATE TABLE pauses_2 (
  pause_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  vendor     TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  tenant     TEXT NOT NULL DEFAULT '',
  cause      TEXT NOT NULL CHECK (cause IN ('operator', 'vendor_quota', 'auth', 'restored')),
  reason     TEXT NOT NULL,
  until      INTEGER,
  actor      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (vendor, model, tenant)
) STRICT;
INSERT INTO sqlite_sequence (name, seq)
  SELECT 'pauses_2', seq FROM sqlite_sequence WHERE name = 'pauses';
INSERT INTO pauses_2 (pause_id, vendor, model, tenant, cause, reason, until, actor, created_at)
  SELECT pause_id, vendor, model, tenant, cause, reason, until, actor, created_at FROM pauses;
DROP TABLE pauses;
ALTER TABLE pauses_2 RENAME TO pauses;
