-- A usage or credit row whose event was not accepted or whose note is not approved.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, service_period, amount_pico, currency, json_array(ledger_id),
    json_object('ledger_id', ledger_id, 'source_type', source_type, 'source_ref', source_ref,
      'source', source), back
  FROM postings WHERE NOT has_source
)
