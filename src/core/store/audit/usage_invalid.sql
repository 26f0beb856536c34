-- An attempt that completed, whose answer told an impossible usage: its cost is not known.
SELECT n.tenant, a.started_at - a.started_at % 3600000 AS period, NULL AS amount,
       NULL AS currency, json_array(CAST(a.job_id AS TEXT)) AS refs,
       json_object('job_id', CAST(a.job_id AS TEXT), 'generation', a.generation,
                   'attempt', a.attempt, 'vendor', n.vendor, 'model', n.model) AS detail,
       0 AS resolved
FROM attempts a JOIN lanes n ON n.lane_id = a.lane_id
WHERE a.outcome = 'completed' AND a.usage_state = 'invalid'
  AND n.tenant BETWEEN :tenant AND :tenant_to
  AND a.started_at >= :from AND a.started_at < :to
ORDER BY n.tenant, period, a.attempt_id
