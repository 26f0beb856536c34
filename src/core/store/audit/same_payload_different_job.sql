-- Usage or credit-note rows of equal payload under different job ids, once per payload: two jobs
-- did the same work. Resolved when the rows that are left in force are of one job.
SELECT tenant, period, amount, currency, refs,
       json_object('source_ref', source_ref, 'job_ids', json(job_ids)) AS detail,
       jobs_in_force < 2 AS resolved
FROM (
  SELECT g.tenant, f.service_period AS period, f.amount_pico AS amount, f.currency, f.source_ref,
         (SELECT json_group_array(ledger_id) FROM (
            SELECT l.ledger_id FROM json_each(g.entries) j JOIN ledger l ON l.entry_id = j.value
            ORDER BY l.ledger_id)) AS refs,
         (SELECT json_group_array(job_id) FROM (
            SELECT DISTINCT l.job_id FROM json_each(g.entries) j
            JOIN ledger l ON l.entry_id = j.value ORDER BY l.job_id)) AS job_ids,
         (SELECT count(DISTINCT coalesce(l.job_id, '')) FROM json_each(g.entries) j
          JOIN ledger l ON l.entry_id = j.value WHERE NOT l.reversed) AS jobs_in_force
  FROM (
    SELECT l.tenant, json_group_array(l.entry_id) AS entries
    FROM cost_ledger l
    WHERE l.source_type IN ('usage', 'credit_note') AND l.tenant BETWEEN :tenant AND :tenant_to
    GROUP BY l.source, l.tenant, l.payload_hash
    HAVING min(coalesce(l.job_id, '')) <> max(coalesce(l.job_id, ''))
  ) g
  JOIN cost_ledger f ON f.entry_id = (
    SELECT l.entry_id FROM json_each(g.entries) j JOIN cost_ledger l ON l.entry_id = j.value
    ORDER BY l.posted_at, coalesce(l.given_id, ''), l.entry_id LIMIT 1)
)
WHERE period >= :from AND period < :to
ORDER BY tenant, period, source_ref
