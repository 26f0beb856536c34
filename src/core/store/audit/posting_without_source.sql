-- A usage row whose event was never accepted, or a credit-note row whose note is not approved.
SELECT l.tenant, l.service_period AS period, l.amount_pico AS amount, l.currency,
       json_array(l.ledger_id) AS refs,
       json_object('ledger_id', l.ledger_id, 'source', l.source, 'source_type', l.source_type,
                   'source_ref', l.source_ref, 'job_id', l.job_id) AS detail,
       l.reversed AS resolved
FROM ledger l
WHERE l.tenant BETWEEN :tenant AND :tenant_to
  AND l.service_period >= :from AND l.service_period < :to
  AND CASE l.source_type
    WHEN 'usage' THEN NOT EXISTS (SELECT 1 FROM usage_events u WHERE u.tenant = l.tenant
      AND u.event_id = l.source_ref AND u.source = l.source)
    WHEN 'credit_note' THEN NOT EXISTS (SELECT 1 FROM credit_notes n
      WHERE n.credit_note_id = l.source_ref AND n.source = l.source AND n.tenant = l.tenant
        AND n.status = 'approved')
    ELSE 0 END
ORDER BY l.tenant, l.service_period, l.ledger_id
