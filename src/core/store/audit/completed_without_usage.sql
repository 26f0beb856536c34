-- A job that the vendor completed: its attempt measured use, but there is no event of it.
SELECT n.tenant, a.started_at - a.started_at % 3600000 AS period, NULL AS amount,
       NULL AS currency, json_array(CAST(j.job_id AS TEXT)) AS refs,
       json_object('job_id', CAST(j.job_id AS TEXT), 'generation', a.generation,
                   'attempt', a.attempt, 'vendor', n.vendor, 'model', n.model) AS detail,
       0 AS resolved
FROM attempts a
JOIN jobs j ON j.job_id = a.job_id AND j.state = 'completed' AND j.result_source = 'vendor'
JOIN lanes n ON n.lane_id = a.lane_id
WHERE a.outcome = 'completed' AND a.usage_state = 'ok'
  AND n.tenant BETWEEN :tenant AND :tenant_to
  AND a.started_at >= :from AND a.started_at < :to
  AND NOT EXISTS (SELECT 1 FROM usage_events u
                  WHERE u.job_id = a.job_id AND u.attempt_id = a.attempt_id)
ORDER BY n.tenant, period, a.attempt_id
