-- A completed attempt with impossible usage.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT n.tenant, a.started_at - a.started_at % 3600000, NULL, '',
    json_array(a.job_id || ':' || a.generation || '.' || a.attempt),
    json_object('job_id', CAST(a.job_id AS TEXT), 'generation', a.generation, 'attempt', a.attempt),
    0
  FROM attempts a JOIN lanes n USING (lane_id)
  WHERE a.outcome = 'completed' AND a.usage_state = 'invalid'
)
