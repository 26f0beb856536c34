-- A correction that names no existing ledger row.
SELECT l.tenant, l.service_period AS period, l.amount_pico AS amount, l.currency,
       json_array(l.ledger_id) AS refs,
       json_object('ledger_id', l.ledger_id, 'source', l.source, 'source_ref', l.source_ref) AS detail,
       l.reversed AS resolved
FROM ledger l
WHERE l.tenant BETWEEN :tenant AND :tenant_to
  AND l.service_period >= :from AND l.service_period < :to
  AND l.source_type NOT IN ('usage', 'credit_note')
  AND l.reverses IS NULL AND l.reprices IS NULL
  AND NOT EXISTS (SELECT 1 FROM cost_ledger o
                  WHERE o.given_id = l.source_ref AND o.source = l.source
                    AND o.entry_id <> l.entry_id)
ORDER BY l.tenant, l.service_period, l.ledger_id
