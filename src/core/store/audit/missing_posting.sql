-- An accepted, priced event without a row. Amount: its cost.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, cost, currency, json_array(event_id),
    json_object('event_id', event_id, 'source', source, 'late_after_issue',
      json(iif(EXISTS (SELECT 1 FROM invoice_hours h
        JOIN invoices i ON i.invoice_key = h.invoice_key WHERE h.tenant = m.tenant
        AND h.currency = m.currency AND h.period = m.period AND h.issued = 1
        AND i.issued_at < m.received_at), 'true', 'false'))), 0
  FROM missing m
)
