-- The database of aiq: one file, written by one process at a time. This file is the readable
-- truth; a new database is made from it, an older one reaches it by the numbered steps in
-- src/core/store/sqlite_migrate.cpp.
--
-- Conventions. Times are UTC milliseconds since 1970 (INTEGER). Keys and hashes are 32-byte BLOBs
-- (SHA-256). Bodies stand in tables of their own so that the rows that change stay small.
-- Ids are AUTOINCREMENT: never used twice, also after rows were pruned.

-- What the file is: key_version, created_at, age_step_ms.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A lane is one (tenant, vendor, model) ever seen. Jobs wait in lanes; limits and pauses are
-- decided per lane, so that a decision costs by active lanes and not by queued jobs.
CREATE TABLE lanes (
  lane_id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant  TEXT NOT NULL CHECK (length(tenant) BETWEEN 1 AND 64),
  vendor  TEXT NOT NULL CHECK (length(vendor) BETWEEN 1 AND 128),
  model   TEXT NOT NULL CHECK (length(model) BETWEEN 1 AND 128),
  UNIQUE (tenant, vendor, model)
) STRICT;

CREATE TABLE jobs (
  job_id          INTEGER PRIMARY KEY AUTOINCREMENT,
  lane_id         INTEGER NOT NULL REFERENCES lanes (lane_id),
  kind            TEXT NOT NULL CHECK (kind IN ('request', 'refresh')),
  endpoint        TEXT NOT NULL CHECK (endpoint IN ('chat', 'embeddings', 'responses', 'messages')),
  state           TEXT NOT NULL CHECK (state IN ('queued', 'processing', 'retrying', 'completed',
                                                 'failed', 'dead_lettered', 'cancelled')),
  -- What a queued or retrying job waits for; NULL in every other state.
  --   ready: for its turn in its lane    time: until run_at
  --   lock:  for another job that asks the same (single flight)
  --   serve: that job is done, the answer is to be looked up in the cache
  wait            TEXT CHECK (wait IN ('ready', 'time', 'lock', 'serve')),
  -- 1 while queued, retrying or processing. A column of its own, changed once in a job's life:
  -- a unique index whose WHERE names the state would be rewritten at every change of state.
  live            INTEGER NOT NULL CHECK (live IN (0, 1)),
  priority        INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
  rank            INTEGER NOT NULL,    -- run_at - priority * age_step: smaller goes first
  created_at      INTEGER NOT NULL,
  run_at          INTEGER NOT NULL,    -- not before
  deadline        INTEGER,             -- not after; NULL = none
  started_at      INTEGER,             -- of the first attempt of this generation
  finished_at     INTEGER,             -- of the change to its present final state
  generation      INTEGER NOT NULL DEFAULT 1 CHECK (generation >= 1),
  attempt         INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),    -- last number given out
  counted         INTEGER NOT NULL DEFAULT 0 CHECK (counted >= 0),    -- see model/retry.h
  maybes          INTEGER NOT NULL DEFAULT 0 CHECK (maybes >= 0),
  crashes         INTEGER NOT NULL DEFAULT 0 CHECK (crashes >= 0),
  uncounted       INTEGER NOT NULL DEFAULT 0 CHECK (uncounted >= 0),
  limited_since   INTEGER,
  max_attempts    INTEGER NOT NULL CHECK (max_attempts >= 1),
  idempotency_key BLOB CHECK (length(idempotency_key) = 32),  -- NULL: bypassing or refresh
  cache_key       BLOB NOT NULL CHECK (length(cache_key) = 32),
  cache_owner     TEXT NOT NULL,       -- 'tenant:t' or 'group:g'
  cache_read      INTEGER NOT NULL CHECK (cache_read IN (0, 1)),
  cache_store     INTEGER NOT NULL CHECK (cache_store IN (0, 1)),
  coalesce        INTEGER NOT NULL CHECK (coalesce IN (0, 1)),  -- takes the lock of its cache key;
                                       -- never when its answer would not be stored
  cache_max_age   INTEGER,             -- ms; an older entry does not answer; NULL = any
  soft_ttl        INTEGER NOT NULL CHECK (soft_ttl >= 0),  -- ms, jitter applied
  hard_ttl        INTEGER NOT NULL CHECK (hard_ttl >= 0),
  client_key      TEXT,
  correlation_id  TEXT NOT NULL,
  lease_token     TEXT,                -- 32 hex digits while processing, else NULL
  lease_until     INTEGER,             -- for people and recovery; a living owner uses its own clock
  leased_at       INTEGER,             -- start of the open attempt
  open_attempt_id INTEGER,
  result_id       INTEGER,
  result_source   TEXT CHECK (result_source IN ('vendor', 'cache')),
  stale           INTEGER NOT NULL DEFAULT 0 CHECK (stale IN (0, 1)),
  truncated       INTEGER NOT NULL DEFAULT 0 CHECK (truncated IN (0, 1)),
  error_class     TEXT,                -- of the last failed attempt: an outcome
  error_code      TEXT,
  error_message   TEXT,
  error_status    INTEGER,
  prompt_tokens   INTEGER NOT NULL DEFAULT 0 CHECK (prompt_tokens >= 0),  -- an estimate
  output_tokens   INTEGER CHECK (output_tokens >= 0),  -- the most that the request asks for
  CHECK ((wait IS NULL) = (state NOT IN ('queued', 'retrying'))),
  CHECK (live = (state IN ('queued', 'retrying', 'processing'))),
  CHECK ((lease_token IS NULL) = (state <> 'processing')),
  CHECK ((leased_at IS NULL) = (state <> 'processing')),
  CHECK ((open_attempt_id IS NULL) = (state <> 'processing'))
) STRICT;

-- One live job per derived key: equal work is one job.
CREATE UNIQUE INDEX jobs_live_key ON jobs (idempotency_key)
  WHERE live = 1 AND idempotency_key IS NOT NULL;
-- At most one refresh at a time renews an entry.
CREATE UNIQUE INDEX jobs_live_refresh ON jobs (cache_key) WHERE live = 1 AND kind = 'refresh';
-- Hot sets, each with its own small index. Never a full index on state.
CREATE INDEX jobs_ready ON jobs (lane_id, rank, job_id) WHERE wait = 'ready';
CREATE INDEX jobs_due ON jobs (run_at) WHERE wait = 'time';
CREATE INDEX jobs_locked ON jobs (cache_key) WHERE wait = 'lock';
CREATE INDEX jobs_serve ON jobs (job_id) WHERE wait = 'serve';
CREATE INDEX jobs_leased ON jobs (lane_id, leased_at) WHERE state = 'processing';
CREATE INDEX jobs_deadline ON jobs (deadline) WHERE deadline IS NOT NULL AND wait IS NOT NULL;
-- The id that a person finds in a log or a message leads to its jobs.
CREATE INDEX jobs_correlation ON jobs (correlation_id);

-- How many jobs are in each state; kept in the transaction of every change.
CREATE TABLE job_counts (
  state TEXT PRIMARY KEY NOT NULL,
  n     INTEGER NOT NULL CHECK (n >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO job_counts (state, n) VALUES ('queued', 0), ('processing', 0), ('retrying', 0),
  ('completed', 0), ('failed', 0), ('dead_lettered', 0), ('cancelled', 0);

-- The request of a job.
CREATE TABLE requests (
  job_id INTEGER PRIMARY KEY REFERENCES jobs (job_id),
  body   BLOB NOT NULL,                -- as sent to the vendor, UTF-8 JSON
  labels TEXT NOT NULL DEFAULT '{}',   -- JSON object of strings
  scope  TEXT NOT NULL DEFAULT '',
  locale TEXT NOT NULL DEFAULT '',
  safety TEXT NOT NULL DEFAULT ''
) STRICT;

-- Without a foreign key: with one, each job that is removed would be looked for in the whole table.
CREATE TABLE job_labels (
  key    TEXT NOT NULL,
  value  TEXT NOT NULL,
  job_id INTEGER NOT NULL,
  PRIMARY KEY (key, value, job_id)
) STRICT, WITHOUT ROWID;

-- Who asked. Several submissions may share one job.
CREATE TABLE submissions (
  submission_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id         INTEGER NOT NULL REFERENCES jobs (job_id),
  tenant         TEXT NOT NULL,
  outcome        TEXT NOT NULL CHECK (outcome IN ('created', 'existing', 'cached')),
  priority       INTEGER NOT NULL,
  run_at         INTEGER NOT NULL,
  deadline       INTEGER,
  created_at     INTEGER NOT NULL,
  withdrawn_at   INTEGER,
  correlation_id TEXT NOT NULL,
  actor          TEXT NOT NULL,        -- 'uid:1000'
  batch_id       INTEGER,              -- of the batch line that it stands for; NULL: a single one
  line           INTEGER
) STRICT;
CREATE INDEX submissions_job ON submissions (job_id);

-- A file of requests. Lines that were refused have no row but in batch_errors.
CREATE TABLE batches (
  batch_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant         TEXT NOT NULL,
  client_key     TEXT,                 -- --idempotency-key
  fingerprint    BLOB NOT NULL CHECK (length(fingerprint) = 32),  -- of the file and of the options
                                       -- that apply to each of its lines
  -- staging: read and checked, nothing is visible (--atomic)
  -- loading: its lines become jobs
  -- loaded:  all of them did
  state          TEXT NOT NULL CHECK (state IN ('staging', 'loading', 'loaded')),
  stage_id       INTEGER,              -- where the lines of --atomic are collected
  created_at     INTEGER NOT NULL,
  loaded_at      INTEGER,
  read_to        INTEGER NOT NULL DEFAULT 0,  -- number of the last line of the file taken in
  lines          INTEGER NOT NULL DEFAULT 0,  -- taken in, blank ones left out; of these:
  created        INTEGER NOT NULL DEFAULT 0,
  existing       INTEGER NOT NULL DEFAULT 0,
  cached         INTEGER NOT NULL DEFAULT 0,
  rejected       INTEGER NOT NULL DEFAULT 0,
  correlation_id TEXT NOT NULL,
  actor          TEXT NOT NULL,
  CHECK ((loaded_at IS NULL) = (state <> 'loaded'))
) STRICT;
CREATE UNIQUE INDEX batches_key ON batches (tenant, client_key) WHERE client_key IS NOT NULL;
-- The same command again goes on with what an interrupted one left.
CREATE INDEX batches_unfinished ON batches (fingerprint) WHERE state <> 'loaded';

CREATE TABLE batch_lines (
  batch_id      INTEGER NOT NULL REFERENCES batches (batch_id),
  line          INTEGER NOT NULL CHECK (line >= 1),  -- of the file
  custom_id     TEXT NOT NULL,
  job_id        INTEGER,               -- NULL while staged
  submission_id INTEGER,
  PRIMARY KEY (batch_id, line)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX batch_lines_custom_id ON batch_lines (batch_id, custom_id);
CREATE INDEX batch_lines_job ON batch_lines (batch_id, job_id);

CREATE TABLE batch_errors (
  batch_id INTEGER NOT NULL REFERENCES batches (batch_id),
  line     INTEGER NOT NULL,
  code     TEXT NOT NULL,
  message  TEXT NOT NULL,              -- redacted
  PRIMARY KEY (batch_id, line)
) STRICT, WITHOUT ROWID;

-- --idempotency-key: unique per tenant, kept also when the job is gone.
CREATE TABLE client_keys (
  tenant        TEXT NOT NULL,
  client_key    TEXT NOT NULL,
  fingerprint   BLOB NOT NULL CHECK (length(fingerprint) = 32),  -- derived key of the request
  job_id        INTEGER NOT NULL,
  submission_id INTEGER NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, client_key)
) STRICT, WITHOUT ROWID;

-- One row per lease, written before anything is sent.
CREATE TABLE attempts (
  attempt_id        INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id            INTEGER NOT NULL REFERENCES jobs (job_id),
  generation        INTEGER NOT NULL CHECK (generation >= 1),
  attempt           INTEGER NOT NULL CHECK (attempt >= 1),
  lane_id           INTEGER NOT NULL REFERENCES lanes (lane_id),
  started_at        INTEGER NOT NULL,
  ended_at          INTEGER,           -- NULL while open
  outcome           TEXT CHECK (outcome IN ('completed', 'rate_limited', 'vendor_quota',
    'overloaded', 'server_error', 'connect_timeout', 'first_byte_timeout', 'total_timeout',
    'network', 'bad_response', 'empty_response', 'rejected', 'auth', 'unknown', 'lease_lost',
    'cancelled', 'released', 'crashed')),
  billed            TEXT CHECK (billed IN ('no', 'yes', 'maybe')),
  counts            INTEGER NOT NULL CHECK (counts IN (0, 1)),  -- 1 from the lease on, until known
  usage_state       TEXT CHECK (usage_state IN ('none', 'ok', 'missing', 'invalid')),
  http_status       INTEGER,
  vendor_request_id TEXT,
  connect_ms        INTEGER,
  first_byte_ms     INTEGER,
  total_ms          INTEGER,
  retry_after_ms    INTEGER,
  error_code        TEXT,
  error_message     TEXT,              -- redacted
  excerpt           TEXT,              -- first 2 KiB of the body of a failing answer, redacted
  late_result_id    INTEGER,           -- an answer that came after the lease was lost
  worker            TEXT NOT NULL,     -- 'pid:123'
  UNIQUE (job_id, generation, attempt),
  CHECK ((ended_at IS NULL) = (outcome IS NULL)),
  CHECK ((outcome IS NULL) = (billed IS NULL))
) STRICT;

-- Answers in the order of completion; the job and the cache entry point at them.
CREATE TABLE results (
  result_id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id    INTEGER NOT NULL,
  body      BLOB NOT NULL              -- as received
) STRICT;

-- Jobs that were answered from the cache and so point at the result of another one. A result
-- stays while its own job, one of these or a cache entry needs it.
CREATE TABLE result_shares (
  result_id INTEGER NOT NULL,
  job_id    INTEGER NOT NULL,
  PRIMARY KEY (result_id, job_id)
) STRICT, WITHOUT ROWID;

-- ---- Money. Amounts are pico: 10^-12 of the currency, exact integers. A sum that may pass int64
-- stands in two columns: NAME_whole x 10^12 + NAME_pico. Periods are UTC hours by their start.
-- `source` tells where a row came from: '' is this aiq, another name an import. Ids of imported
-- rows are unique within their source.

-- Raw use of vendors, append-only. Meters are disjoint; a meter of 0 units has no row.
CREATE TABLE usage_events (
  usage_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  source         TEXT NOT NULL DEFAULT '',
  tenant         TEXT NOT NULL,
  event_id       TEXT NOT NULL CHECK (length(event_id) BETWEEN 1 AND 200),
                                       -- ours: 'job:<id>:<generation>.<attempt>:<meter>'
  vendor         TEXT NOT NULL DEFAULT '',
  model          TEXT NOT NULL,
  meter          TEXT NOT NULL CHECK (length(meter) BETWEEN 1 AND 32),
  units          INTEGER NOT NULL CHECK (units > 0),
  context_tokens INTEGER,              -- prompt tokens of its request, for prices with a threshold
  unit_pico      INTEGER CHECK (unit_pico >= 0),  -- its own price; NULL: the price book's
  currency       TEXT,                 -- of its own price
  occurred_at    INTEGER NOT NULL,     -- ours: start of the attempt
  received_at    INTEGER NOT NULL,
  attempt_id     INTEGER,              -- may be pruned; the event stays
  job_id         INTEGER,
  job_ref        TEXT,                 -- job id of another system
  correlation_id TEXT,
  payload_hash   TEXT,                 -- of all but received_at; NULL: ours, delivered once
  CHECK ((unit_pico IS NULL) OR (currency IS NOT NULL)),
  UNIQUE (tenant, event_id, source)
) STRICT;
CREATE INDEX usage_events_job ON usage_events (job_id) WHERE job_id IS NOT NULL;
CREATE TRIGGER usage_events_no_update BEFORE UPDATE ON usage_events
BEGIN SELECT RAISE(ABORT, 'usage_events is append-only'); END;
CREATE TRIGGER usage_events_no_delete BEFORE DELETE ON usage_events
BEGIN SELECT RAISE(ABORT, 'usage_events is append-only'); END;

-- Redeliveries of an event with the same payload.
CREATE TABLE usage_duplicates (
  duplicate_id INTEGER PRIMARY KEY AUTOINCREMENT,
  source       TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  event_id     TEXT NOT NULL,
  occurred_at  INTEGER NOT NULL,
  received_at  INTEGER NOT NULL
) STRICT;

-- Deliveries of a known event with another payload: kept apart until a person decides.
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
                                       -- kept: the first payload holds; replaced: this one does
  reason       TEXT,
  actor        TEXT,
  decided_at   INTEGER,
  UNIQUE (tenant, event_id, source, payload_hash),
  CHECK ((decided_at IS NULL) = (state = 'open'))
) STRICT;

-- Events that are not posted yet: `new` ones are collected here by aggregation, the others wait
-- for a price or for the end of a freeze.
CREATE TABLE usage_pending (
  tenant   TEXT NOT NULL,
  period   INTEGER NOT NULL,
  usage_id INTEGER NOT NULL,
  why      TEXT NOT NULL CHECK (why IN ('new', 'unpriced', 'frozen')),
  PRIMARY KEY (tenant, period, usage_id)
) STRICT, WITHOUT ROWID;

-- usage_seen: aggregation has collected every event up to this id.
CREATE TABLE cost_state (
  name TEXT PRIMARY KEY NOT NULL,
  n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO cost_state (name, n) VALUES ('usage_seen', 0);

-- The price book, append-only. The price of a time: the latest effective_from not after it, of
-- these the latest row. above_tokens > 0: of requests with more prompt tokens than that.
CREATE TABLE prices (
  price_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  vendor         TEXT NOT NULL,
  model          TEXT NOT NULL,
  meter          TEXT NOT NULL,
  currency       TEXT NOT NULL CHECK (length(currency) = 3),
  above_tokens   INTEGER NOT NULL DEFAULT 0 CHECK (above_tokens >= 0),
  unit_pico      INTEGER CHECK (unit_pico >= 0),  -- per unit; NULL: known to have none
  effective_from INTEGER NOT NULL,
  origin         TEXT NOT NULL,        -- 'set', 'litellm', 'aiq'
  actor          TEXT NOT NULL,
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX prices_of_model ON prices (model, meter, vendor, effective_from, price_id);
CREATE TRIGGER prices_no_update BEFORE UPDATE ON prices
BEGIN SELECT RAISE(ABORT, 'prices is append-only'); END;
CREATE TRIGGER prices_no_delete BEFORE DELETE ON prices
BEGIN SELECT RAISE(ABORT, 'prices is append-only'); END;

-- One unit of aggregation: a tenant and period, each time it was worked on.
CREATE TABLE cost_runs (
  run_id         INTEGER PRIMARY KEY AUTOINCREMENT,
  source         TEXT NOT NULL DEFAULT '',
  call_id        TEXT NOT NULL,        -- of the command or of the daemon's turn
  tenant         TEXT NOT NULL,
  period         INTEGER NOT NULL,
  initiator      TEXT NOT NULL CHECK (initiator IN ('daemon', 'command', 'import')),
  job_ref        TEXT,                 -- job id of another system
  started_at     INTEGER NOT NULL,
  finished_at    INTEGER,
  retry_count    INTEGER NOT NULL DEFAULT 0,
  outcome        TEXT CHECK (outcome IN ('done', 'busy', 'frozen', 'failed', 'abandoned')),
  events         INTEGER NOT NULL DEFAULT 0,  -- = posted + replayed + conflicts + unpriced
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

-- A stop for a tenant's hours from period_from (included) to period_to (not included).
CREATE TABLE freezes (
  freeze_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant      TEXT NOT NULL,
  period_from INTEGER NOT NULL,
  period_to   INTEGER NOT NULL,
  origin      TEXT NOT NULL,           -- 'operator' or 'import:<id>'
  until       INTEGER,                 -- NULL: until lifted
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
  amount_pico    INTEGER NOT NULL,     -- as it is posted: negative reduces
  currency       TEXT NOT NULL,
  status         TEXT NOT NULL,        -- 'approved' counts
  reason         TEXT NOT NULL,
  approved_by    TEXT,
  created_at     INTEGER NOT NULL,
  UNIQUE (credit_note_id, source)
) STRICT;

-- What is owed, append-only. The key makes every retry of a posting harmless.
CREATE TABLE cost_ledger (
  entry_id        INTEGER PRIMARY KEY AUTOINCREMENT,
  source          TEXT NOT NULL DEFAULT '',
  given_id        TEXT,                -- ledger id of another system
  idempotency_key TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  source_type     TEXT NOT NULL,       -- ours: usage, credit_note, reversal, reprice
  source_ref      TEXT NOT NULL,       -- event id, note id, ledger id
  service_period  INTEGER NOT NULL,
  posting_period  INTEGER NOT NULL,
  occurred_at     INTEGER NOT NULL,
  posted_at       INTEGER NOT NULL,
  amount_pico     INTEGER NOT NULL,
  currency        TEXT NOT NULL,
  usage_id        INTEGER,             -- the event behind it; of a reversal the reversed row's
  price_id        INTEGER,             -- NULL: the event's own price
  reverses        INTEGER,             -- entry_id
  reprices        INTEGER,             -- entry_id
  repair_id       INTEGER,             -- booked by this repair
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

-- The projection that a dashboard shows: a tenant's hour in one currency, recomputed from the
-- ledger and never added to.
CREATE TABLE tenant_cost_summary (
  summary_id          INTEGER PRIMARY KEY AUTOINCREMENT,
  source              TEXT NOT NULL DEFAULT '',
  tenant              TEXT NOT NULL,
  period              INTEGER NOT NULL,
  currency            TEXT NOT NULL,
  service_total_whole INTEGER NOT NULL,  -- of the rows with this service_period
  service_total_pico  INTEGER NOT NULL,
  billed_total_whole  INTEGER,           -- of the rows with this posting_period; NULL: an imported
  billed_total_pico   INTEGER,           -- row that knows only the one total
  usage_whole         INTEGER NOT NULL DEFAULT 0,  -- the service total by kind of row
  usage_pico          INTEGER NOT NULL DEFAULT 0,
  credit_whole        INTEGER NOT NULL DEFAULT 0,
  credit_pico         INTEGER NOT NULL DEFAULT 0,
  correction_whole    INTEGER NOT NULL DEFAULT 0,
  correction_pico     INTEGER NOT NULL DEFAULT 0,
  ledger_rows         INTEGER NOT NULL DEFAULT 0,  -- with this service_period
  events              INTEGER NOT NULL DEFAULT 0,  -- usage rows of these
  watermark           INTEGER NOT NULL DEFAULT 0,  -- latest entry_id that it has seen
  content_hash        TEXT NOT NULL DEFAULT '',    -- over totals and counts
  updated_at          INTEGER NOT NULL,
  UNIQUE (tenant, period, currency)
) STRICT;

-- What a tenant is asked to pay. Issued ones never change.
CREATE TABLE invoices (
  invoice_key  INTEGER PRIMARY KEY AUTOINCREMENT,
  source       TEXT NOT NULL DEFAULT '',
  given_id     TEXT,                   -- invoice id of another system
  tenant       TEXT NOT NULL,
  currency     TEXT NOT NULL,
  period_start INTEGER NOT NULL,
  period_end   INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('draft', 'held', 'issued', 'void')),
  total_whole  INTEGER NOT NULL,       -- rounded to the minor unit
  total_pico   INTEGER NOT NULL,
  rounding_pico INTEGER NOT NULL,      -- total - exact sum of the lines
  lines        TEXT NOT NULL,          -- JSON array
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

-- The hours of each invoice that is not void: one hour belongs to one invoice.
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

-- Nothing is booked into an issued hour, but by an import (as found) or a repair (what the invoice
-- billed); nothing of use into a frozen one, but by these.
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

-- Findings that a person has seen and accepts. The id is a hash of what the finding says.
CREATE TABLE audit_acks (
  finding_id TEXT PRIMARY KEY NOT NULL,
  code       TEXT NOT NULL,
  tenant     TEXT NOT NULL,
  reason     TEXT NOT NULL,
  actor      TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- Repairs that were carried out, with the state before and after.
CREATE TABLE repairs (
  repair_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  plan_hash    TEXT NOT NULL UNIQUE,
  plan         TEXT NOT NULL,          -- JSON
  snapshot     TEXT NOT NULL,          -- JSON: what it found
  result       TEXT NOT NULL,          -- JSON: what it did
  actor        TEXT NOT NULL,
  applied_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE cache_entries (
  cache_key     BLOB PRIMARY KEY NOT NULL CHECK (length(cache_key) = 32),
  cache_owner   TEXT NOT NULL,
  lane_id       INTEGER NOT NULL REFERENCES lanes (lane_id),  -- of the job that paid
  job_id        INTEGER NOT NULL,      -- that job
  result_id     INTEGER NOT NULL,
  truncated     INTEGER NOT NULL CHECK (truncated IN (0, 1)),
  created_at    INTEGER NOT NULL,
  soft_until    INTEGER NOT NULL,      -- stale from here on; later when a refresh failed for good
  hard_until    INTEGER NOT NULL,
  last_used_at  INTEGER NOT NULL,
  hits          INTEGER NOT NULL DEFAULT 0,
  bytes         INTEGER NOT NULL,      -- of the result's body
  tokens        INTEGER NOT NULL,      -- that a hit avoids, all meters; by meter:
  input          INTEGER NOT NULL DEFAULT 0,
  cache_read     INTEGER NOT NULL DEFAULT 0,
  cache_write_5m INTEGER NOT NULL DEFAULT 0,
  cache_write_1h INTEGER NOT NULL DEFAULT 0,
  output         INTEGER NOT NULL DEFAULT 0,
  price_vendor   TEXT NOT NULL DEFAULT ''  -- name of its vendor in the price book
) STRICT, WITHOUT ROWID;
CREATE INDEX cache_entries_used ON cache_entries (last_used_at);
CREATE INDEX cache_entries_expiry ON cache_entries (hard_until);

-- hits, stale_hits, misses, avoided_tokens count since the beginning; entries and bytes are there
-- now.
CREATE TABLE cache_counters (
  name TEXT PRIMARY KEY NOT NULL,
  n    INTEGER NOT NULL CHECK (n >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO cache_counters (name, n) VALUES ('hits', 0), ('stale_hits', 0), ('misses', 0),
  ('avoided_tokens', 0), ('entries', 0), ('bytes', 0);

-- What the hits would have cost by the prices of their time, since the beginning: whole + pico /
-- 10^12 of a currency. Hits whose answer has no price are not in it.
CREATE TABLE cache_avoided (
  currency TEXT PRIMARY KEY NOT NULL,
  whole    INTEGER NOT NULL CHECK (whole >= 0),
  pico     INTEGER NOT NULL CHECK (pico BETWEEN 0 AND 999999999999)
) STRICT, WITHOUT ROWID;

-- Locks only save work; no correctness rests on one. 'cache:<hex of the cache key>' belongs to
-- the lease whose token is its owner, and ends with it.
CREATE TABLE locks (
  name        TEXT PRIMARY KEY NOT NULL,
  owner       TEXT NOT NULL,
  job_id      INTEGER,
  acquired_at INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- '' in a scope column means any. All three '' is the whole queue.
CREATE TABLE pauses (
  pause_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  vendor     TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  tenant     TEXT NOT NULL DEFAULT '',
  cause      TEXT NOT NULL CHECK (cause IN ('operator', 'vendor_quota', 'auth', 'restored')),
  reason     TEXT NOT NULL,
  until      INTEGER,                  -- NULL = until resumed
  actor      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (vendor, model, tenant)
) STRICT;

-- "Not before": the wait that the last answer of a vendor and model asked for. A default of ours,
-- after an answer that asked for none, only extends it.
CREATE TABLE rate_holds (
  vendor TEXT NOT NULL,
  model  TEXT NOT NULL,
  until  INTEGER NOT NULL,
  set_at INTEGER NOT NULL,
  -- Once it is over those who waited start one after the other.
  waiting    INTEGER,                  -- how many they were; NULL: not counted yet
  next_start REAL,                     -- not before
  PRIMARY KEY (vendor, model)
) STRICT, WITHOUT ROWID;

-- ---- What limits have given out and what vendors have taught: as long as a row is absent, nothing
-- was taken and nothing is wrong. Numbers of `recent` are explained in src/core/engine.

-- A limit of requests or tokens per minute (engine/rate_window.h).
CREATE TABLE rate_windows (
  scope       TEXT NOT NULL CHECK (scope IN ('vendor', 'model', 'tenant')),
  name        TEXT NOT NULL,           -- vendor; vendor, a space, model; tenant
  unit        TEXT NOT NULL CHECK (unit IN ('requests', 'tokens')),
  level       REAL NOT NULL,           -- of the bucket at `at`; below 0: taken ahead of its time
  at          INTEGER NOT NULL,
  recent      TEXT NOT NULL,           -- taken by second: 'second:units ...', oldest first
  reported    INTEGER,                 -- the limit per minute that the vendor told last
  reported_at INTEGER,
  PRIMARY KEY (scope, name, unit)
) STRICT, WITHOUT ROWID;

-- How much of its limits a vendor and model is given after it refused for being asked too much.
CREATE TABLE vendor_pace (
  vendor TEXT NOT NULL,
  model  TEXT NOT NULL,
  share  REAL NOT NULL CHECK (share > 0 AND share <= 1),  -- at `at`; it grows back with time
  at     INTEGER NOT NULL,
  PRIMARY KEY (vendor, model)
) STRICT, WITHOUT ROWID;

-- The circuit breaker of a vendor and model (engine/breaker.h).
CREATE TABLE breakers (
  vendor     TEXT NOT NULL,
  model      TEXT NOT NULL,
  open_until INTEGER,                  -- NULL: closed. Afterwards a few requests probe
  streak     INTEGER NOT NULL,         -- how often it opened again without having closed
  probes_ok  INTEGER NOT NULL,
  recent     TEXT NOT NULL,            -- 'second:answered:failed ...' since the first failure
  PRIMARY KEY (vendor, model)
) STRICT, WITHOUT ROWID;

-- Weighted fair share over tenants (engine/fair_share.h). The row of tenant '' is the clock.
CREATE TABLE tenant_shares (
  tenant    TEXT PRIMARY KEY NOT NULL,
  served_at INTEGER NOT NULL,          -- last start of one of its jobs
  finish    REAL NOT NULL              -- virtual time up to which it has had its share
) STRICT, WITHOUT ROWID;

CREATE TABLE vendors (
  vendor     TEXT PRIMARY KEY NOT NULL,
  proven     INTEGER NOT NULL CHECK (proven IN (0, 1)),  -- 0: one request at a time
  section    TEXT NOT NULL DEFAULT '',  -- fingerprint of its configuration, secret included
  last_seen  INTEGER,                   -- of the last answer, to a second
  rate       TEXT NOT NULL DEFAULT '{}', -- what its rate headers said last, JSON
  unproven_after INTEGER NOT NULL DEFAULT 0 -- only an attempt with a greater id can prove it
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
  dlq_id          INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id          INTEGER NOT NULL REFERENCES jobs (job_id),
  generation      INTEGER NOT NULL,
  lane_id         INTEGER NOT NULL REFERENCES lanes (lane_id),
  reason          TEXT NOT NULL CHECK (reason IN ('rejected', 'attempts_exhausted', 'deadline',
                    'crash_limit', 'unknown_limit', 'rate_limit_exhausted')),
  error_class     TEXT,                -- outcome of the last attempt; NULL: never sent
  http_status     INTEGER,
  error_code      TEXT,
  error_message   TEXT,
  attempts        INTEGER NOT NULL,
  state           TEXT NOT NULL CHECK (state IN ('open', 'replayed', 'discarded')),
  dead_at         INTEGER NOT NULL,
  resolved_at     INTEGER,
  resolved_by     TEXT,
  note            TEXT,
  correlation_id  TEXT NOT NULL,
  idempotency_key BLOB,
  UNIQUE (job_id, generation)
) STRICT;
CREATE INDEX dead_letters_open ON dead_letters (dlq_id) WHERE state = 'open';
-- A request that the vendor refused is not sent again by an equal submit.
CREATE INDEX dead_letters_rejected ON dead_letters (idempotency_key)
  WHERE state = 'open' AND reason = 'rejected';

-- What a request was before an operator edited it, as a dead letter of this generation.
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

-- One row per change of a job, written in its transaction.
CREATE TABLE outbox (
  event_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  at         INTEGER NOT NULL,
  job_id     INTEGER NOT NULL,
  from_state TEXT,                     -- NULL: the job is new
  to_state   TEXT NOT NULL,
  detail     TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX outbox_job ON outbox (job_id);

-- Long work that must become visible at once is collected here in slices and published by one
-- short commit. What is not published when its process dies is removed at the next start.
CREATE TABLE stages (
  stage_id     INTEGER PRIMARY KEY AUTOINCREMENT,
  purpose      TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  published_at INTEGER
) STRICT;
CREATE TABLE stage_rows (
  stage_id INTEGER NOT NULL REFERENCES stages (stage_id),
  seq      INTEGER NOT NULL,
  body     BLOB NOT NULL,
  PRIMARY KEY (stage_id, seq)
) STRICT, WITHOUT ROWID;
