-- Two runs of one tenant's hour that posted, overlapping in time, once per pair. Resolved once no
-- double posting of the hour is in force.
posted AS (
  SELECT *, coalesce(job_ref, CAST(run_id AS TEXT)) AS name FROM cost_runs
  WHERE finished_at IS NOT NULL AND (posted > 0 OR (initiator = 'import' AND outcome = 'done'))
),
pairs AS (
  SELECT a.tenant, a.period, a.name AS first, b.name AS second,
    min(a.finished_at, b.finished_at) - max(a.started_at, b.started_at) AS overlap_ms
  FROM posted a JOIN posted b ON b.tenant = a.tenant AND b.period = a.period
    AND b.source = a.source AND (a.started_at, a.name, a.run_id) < (b.started_at, b.name, b.run_id)
),
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, NULL, '', json_array(first, second),
    json_object('job_ids', json_array(first, second), 'overlap_seconds', overlap_ms / 1000.0),
    NOT EXISTS (SELECT 1 FROM doubles d WHERE d.tenant = p.tenant
      AND d.service_period = p.period AND NOT d.resolved)
  FROM pairs p WHERE overlap_ms > 0
)
