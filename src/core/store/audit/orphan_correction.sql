-- A correction that names no existing ledger row. Amount: that row's.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, service_period, amount_pico, currency,
    json_array(coalesce(given_id, CAST(entry_id AS TEXT))),
    json_object('ledger_id', coalesce(given_id, CAST(entry_id AS TEXT)), 'source_ref', source_ref,
      'source', source), entry_id IN (SELECT entry_id FROM taken_back)
  FROM cost_ledger l
  WHERE source_type NOT IN ('usage', 'credit_note') AND reverses IS NULL AND reprices IS NULL
    AND NOT EXISTS (SELECT 1 FROM cost_ledger o WHERE o.given_id = l.source_ref
      AND o.source = l.source)
    AND NOT (source = '' AND EXISTS (SELECT 1 FROM cost_ledger o
      WHERE CAST(o.entry_id AS TEXT) = l.source_ref))
)
