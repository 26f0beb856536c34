-- An approved credit note without a row of the ledger.
SELECT n.tenant, n.service_period AS period, n.amount_pico AS amount, n.currency,
       json_array(n.credit_note_id) AS refs,
       json_object('credit_note_id', n.credit_note_id, 'source', n.source, 'approved_by', n.approved_by) AS detail,
       0 AS resolved
FROM credit_notes n
WHERE n.tenant BETWEEN :tenant AND :tenant_to AND n.status = 'approved'
  AND n.service_period >= :from AND n.service_period < :to
  AND NOT EXISTS (SELECT 1 FROM cost_ledger l WHERE l.source_ref = n.credit_note_id
                  AND l.tenant = n.tenant AND l.source_type = 'credit_note'
                  AND l.source = n.source)
ORDER BY n.tenant, n.service_period, n.credit_note_id
