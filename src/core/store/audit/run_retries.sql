-- A run that was the third retry of its hour or a later one.
SELECT r.tenant, r.period, NULL AS amount, NULL AS currency,
       json_array(coalesce(r.job_ref, CAST(r.run_id AS TEXT))) AS refs,
       json_object('job_id', coalesce(r.job_ref, CAST(r.run_id AS TEXT)),
                   'retry_count', r.retry_count, 'outcome', r.outcome) AS detail,
       0 AS resolved
FROM cost_runs r
WHERE r.retry_count >= 3 AND r.tenant BETWEEN :tenant AND :tenant_to
  AND r.period >= :from AND r.period < :to
ORDER BY r.tenant, r.period, r.started_at, r.run_id
