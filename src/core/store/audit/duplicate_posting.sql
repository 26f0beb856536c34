-- A second usage or credit-note row of one source: it was charged, or credited, twice.
SELECT d.tenant, d.service_period AS period, d.amount_pico AS amount, d.currency,
       json_array(d.ledger_id) AS refs,
       json_object('ledger_id', d.ledger_id,
                   'duplicate_of', (SELECT k.ledger_id FROM ledger k WHERE k.entry_id = d.right_entry),
                   'source', d.source, 'source_ref', d.source_ref, 'job_id', d.job_id,
                   'retry_count', d.retry_count) AS detail,
       d.reversed AS resolved
FROM duplicate d
WHERE d.tenant BETWEEN :tenant AND :tenant_to
  AND d.service_period >= :from AND d.service_period < :to AND d.right_entry IS NOT NULL
ORDER BY d.tenant, d.service_period, d.ledger_id
