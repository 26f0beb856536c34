-- A run that needed three retries or more.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, NULL, '', json_array(coalesce(job_ref, CAST(run_id AS TEXT))),
    json_object('run_id', CAST(run_id AS TEXT), 'job_id', job_ref, 'retry_count', retry_count), 0
  FROM cost_runs WHERE retry_count >= 3
)
