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

CREATE TABLE job_labels (
  key    TEXT NOT NULL,
  value  TEXT NOT NULL,
  job_id INTEGER NOT NULL REFERENCES jobs (job_id),
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
  actor          TEXT NOT NULL         -- 'uid:1000'
) STRICT;
CREATE INDEX submissions_job ON submissions (job_id);

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
  excerpt           TEXT,              -- first 2 KiB of an answer not understood, redacted
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

-- Raw use of vendors, append-only. Meters are disjoint; a meter of 0 units has no row.
CREATE TABLE usage_events (
  usage_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant         TEXT NOT NULL,
  event_id       TEXT NOT NULL,        -- 'job:<id>:<generation>.<attempt>:<meter>'
  vendor         TEXT NOT NULL,
  model          TEXT NOT NULL,
  meter          TEXT NOT NULL CHECK (length(meter) BETWEEN 1 AND 32),
  units          INTEGER NOT NULL CHECK (units > 0),
  occurred_at    INTEGER NOT NULL,     -- start of the attempt
  received_at    INTEGER NOT NULL,
  attempt_id     INTEGER REFERENCES attempts (attempt_id),
  job_id         INTEGER,
  correlation_id TEXT,
  UNIQUE (tenant, event_id)
) STRICT;
CREATE INDEX usage_events_job ON usage_events (job_id) WHERE job_id IS NOT NULL;
CREATE TRIGGER usage_events_no_update BEFORE UPDATE ON usage_events
BEGIN SELECT RAISE(ABORT, 'usage_events is append-only'); END;
CREATE TRIGGER usage_events_no_delete BEFORE DELETE ON usage_events
BEGIN SELECT RAISE(ABORT, 'usage_events is append-only'); END;

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
  tokens        INTEGER NOT NULL       -- that a hit avoids, all meters
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
  cause      TEXT NOT NULL CHECK (cause IN ('operator', 'vendor_quota', 'auth')),
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
  PRIMARY KEY (vendor, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE vendors (
  vendor     TEXT PRIMARY KEY NOT NULL,
  proven     INTEGER NOT NULL CHECK (proven IN (0, 1)),  -- 0: one request at a time
  section    TEXT NOT NULL DEFAULT '',  -- fingerprint of its configuration, secret included
  last_seen  INTEGER,                   -- of the last answer, to a second
  rate       TEXT NOT NULL DEFAULT '{}' -- what its rate headers said last, JSON
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
