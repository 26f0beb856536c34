-- What `aiq sql` reads. Made anew on each of its connections, in no file.

CREATE TEMP VIEW v_jobs AS
SELECT j.job_id, l.tenant AS tenant_id, l.vendor, l.model, j.endpoint, j.kind, j.state AS status,
  j.wait, j.priority, j.generation, j.attempt AS attempts, j.max_attempts,
  aiq_time(j.created_at) COLLATE aiq_time AS created_at,
  aiq_time(j.run_at) COLLATE aiq_time AS run_at,
  aiq_time(j.deadline) COLLATE aiq_time AS deadline,
  aiq_time(j.started_at) COLLATE aiq_time AS started_at,
  aiq_time(j.finished_at) COLLATE aiq_time AS finished_at,
  j.result_source, j.stale, j.error_class, j.error_status AS http_status, j.error_code,
  j.error_message, lower(hex(j.idempotency_key)) AS idempotency_key,
  lower(hex(j.cache_key)) AS cache_key, j.client_key, j.correlation_id
FROM jobs j JOIN lanes l ON l.lane_id = j.lane_id;

CREATE TEMP VIEW v_attempts AS
SELECT a.attempt_id, a.job_id, l.tenant AS tenant_id, l.vendor, l.model, a.generation, a.attempt,
  aiq_time(a.started_at) COLLATE aiq_time AS started_at,
  aiq_time(a.started_at) COLLATE aiq_time AS created_at,
  aiq_time(a.ended_at) COLLATE aiq_time AS finished_at,
  a.outcome, a.billed, a.counts, a.usage_state, a.http_status, a.vendor_request_id, a.connect_ms,
  a.first_byte_ms, a.total_ms, a.retry_after_ms, a.error_code, a.error_message
FROM attempts a JOIN lanes l ON l.lane_id = a.lane_id;

CREATE TEMP VIEW v_usage AS
SELECT u.usage_id, u.source, u.tenant AS tenant_id, u.event_id, u.vendor, u.model, u.meter, u.units,
  u.context_tokens,
  aiq_money(u.unit_pico / 1000000, u.unit_pico % 1000000 * 1000000) AS price_per_million,
  u.currency,
  aiq_time(u.occurred_at - u.occurred_at % 3600000) COLLATE aiq_time AS period_start,
  aiq_time(u.occurred_at) COLLATE aiq_time AS occurred_at,
  aiq_time(u.occurred_at) COLLATE aiq_time AS created_at,
  aiq_time(u.received_at) COLLATE aiq_time AS received_at,
  coalesce(u.job_ref, u.job_id) AS job_id, u.correlation_id
FROM usage_events u;

CREATE TEMP VIEW v_ledger AS
SELECT coalesce(c.given_id, c.entry_id) AS ledger_id, c.source, c.tenant AS tenant_id,
  c.source_type, c.source_ref,
  aiq_time(c.service_period) COLLATE aiq_time AS period_start,
  aiq_time(c.service_period) COLLATE aiq_time AS service_period,
  aiq_time(c.posting_period) COLLATE aiq_time AS posting_period,
  aiq_time(c.occurred_at) COLLATE aiq_time AS occurred_at,
  aiq_time(c.posted_at) COLLATE aiq_time AS created_at,
  aiq_time(c.posted_at) COLLATE aiq_time AS posted_at,
  aiq_money(0, c.amount_pico) AS amount, aiq_sign(0, c.amount_pico) AS sign, c.currency,
  c.idempotency_key, u.model, u.meter, u.units, c.price_id,
  coalesce(r.given_id, c.reverses) AS reverses, coalesce(p.given_id, c.reprices) AS reprices,
  c.repair_id, c.job_id, c.run_id, c.retry_count, c.correlation_id, c.reason, c.actor
FROM cost_ledger c LEFT JOIN usage_events u ON u.usage_id = c.usage_id
  LEFT JOIN cost_ledger r ON r.entry_id = c.reverses
  LEFT JOIN cost_ledger p ON p.entry_id = c.reprices;

CREATE TEMP VIEW v_summary AS
SELECT s.source, s.tenant AS tenant_id,
  aiq_time(s.period) COLLATE aiq_time AS period_start,
  aiq_time(s.period + 3600000) COLLATE aiq_time AS period_end, s.currency,
  aiq_money(s.service_total_whole, s.service_total_pico) AS total_amount,
  aiq_money(s.service_total_whole, s.service_total_pico) AS amount,
  aiq_sign(s.service_total_whole, s.service_total_pico) AS sign,
  aiq_money(s.billed_total_whole, s.billed_total_pico) AS billed_amount,
  aiq_money(s.usage_whole, s.usage_pico) AS usage_amount,
  aiq_money(s.credit_whole, s.credit_pico) AS credit_amount,
  aiq_money(s.correction_whole, s.correction_pico) AS correction_amount,
  s.ledger_rows, s.events, s.content_hash,
  aiq_time(s.updated_at) COLLATE aiq_time AS updated_at
FROM tenant_cost_summary s;

CREATE TEMP VIEW v_runs AS
SELECT r.run_id, r.source, r.call_id, r.tenant AS tenant_id,
  aiq_time(r.period) COLLATE aiq_time AS period_start, r.initiator AS trigger,
  aiq_time(r.started_at) COLLATE aiq_time AS started_at,
  aiq_time(r.started_at) COLLATE aiq_time AS created_at,
  aiq_time(r.finished_at) COLLATE aiq_time AS finished_at,
  r.retry_count, r.outcome, r.outcome AS status, r.events, r.posted, r.replayed, r.conflicts,
  r.unpriced, r.late, r.job_ref AS job_id, r.correlation_id, r.actor
FROM cost_runs r;

CREATE TEMP VIEW v_invoices AS
SELECT coalesce(i.given_id, i.invoice_key) AS invoice_id, i.source, i.tenant AS tenant_id,
  aiq_time(i.period_start) COLLATE aiq_time AS period_start,
  aiq_time(i.period_end) COLLATE aiq_time AS period_end, i.currency, i.state, i.state AS status,
  aiq_money(i.total_whole, i.total_pico) AS total_amount,
  aiq_money(i.total_whole, i.total_pico) AS amount,
  aiq_sign(i.total_whole, i.total_pico) AS sign, aiq_money(0, i.rounding_pico) AS rounding,
  i.held_reason, aiq_time(i.created_at) COLLATE aiq_time AS created_at,
  aiq_time(i.updated_at) COLLATE aiq_time AS updated_at,
  aiq_time(i.issued_at) COLLATE aiq_time AS issued_at, i.actor
FROM invoices i;
