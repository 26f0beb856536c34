-- Two runs of one tenant's hour that posted, at the same time. Resolved when nothing of the hour is
-- posted twice (any more).
SELECT a.tenant, a.period, NULL AS amount, NULL AS currency,
       json_array(coalesce(a.job_ref, CAST(a.run_id AS TEXT)),
                  coalesce(b.job_ref, CAST(b.run_id AS TEXT))) AS refs,
       json_object('job_ids', json_array(coalesce(a.job_ref, CAST(a.run_id AS TEXT)),
                                         coalesce(b.job_ref, CAST(b.run_id AS TEXT))),
                   'overlap_seconds', json(printf('%d.%0.*d', overlap / 1000,
                     iif(overlap % 1000 = 0, 1, 3),
                     iif(overlap % 1000 = 0, 0, overlap % 1000)))) AS detail,
       NOT EXISTS (SELECT 1 FROM duplicate d WHERE d.tenant = a.tenant
                   AND d.service_period = a.period AND NOT d.reversed
                   AND d.right_entry IS NOT NULL) AS resolved
FROM (
  SELECT x.run_id AS first_id, y.run_id AS second_id,
         min(coalesce(x.finished_at, :now), coalesce(y.finished_at, :now))
           - max(x.started_at, y.started_at) AS overlap
  FROM cost_runs x
  JOIN cost_runs y ON y.tenant = x.tenant AND y.period = x.period AND y.source = x.source
    AND (y.started_at, coalesce(y.job_ref, ''), y.run_id)
      > (x.started_at, coalesce(x.job_ref, ''), x.run_id)
  WHERE x.tenant BETWEEN :tenant AND :tenant_to AND x.period >= :from AND x.period < :to
    AND iif(x.source = '', x.posted > 0, x.outcome = 'done')
    AND iif(y.source = '', y.posted > 0, y.outcome = 'done')
) pair
JOIN cost_runs a ON a.run_id = pair.first_id
JOIN cost_runs b ON b.run_id = pair.second_id
WHERE pair.overlap > 0
ORDER BY a.tenant, a.period, a.started_at, b.started_at, a.job_ref, b.job_ref
