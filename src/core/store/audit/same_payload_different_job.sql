-- Rows of equal payload under different job ids, once per payload. Amount: one row's.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, min(service_period), max(amount_pico), currency,
    (SELECT json_group_array(ledger_id) FROM (SELECT ledger_id FROM postings q
      WHERE q.source = p.source AND q.tenant = p.tenant AND q.payload_hash = p.payload_hash
      AND q.source_type = p.source_type AND q.currency = p.currency ORDER BY 1)),
    json_object('source_ref', min(source_ref), 'job_ids', json((SELECT json_group_array(job_id)
      FROM (SELECT DISTINCT job_id FROM postings q WHERE q.source = p.source
        AND q.tenant = p.tenant AND q.payload_hash = p.payload_hash
        AND q.source_type = p.source_type AND q.currency = p.currency AND job_id IS NOT NULL
        ORDER BY 1)))),
    count(DISTINCT job_id) FILTER (WHERE NOT back) < 2
  FROM postings p WHERE payload_hash <> ''
  GROUP BY source, tenant, source_type, currency, payload_hash HAVING count(DISTINCT job_id) > 1
)
