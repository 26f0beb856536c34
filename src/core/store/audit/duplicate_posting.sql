-- A second usage or credit row of one source. Amount: that row's.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, service_period, amount_pico, currency, json_array(ledger_id),
    json_object('ledger_id', ledger_id, 'duplicate_of', first_id, 'source_ref', source_ref,
      'job_id', job_id, 'retry_count', retry_count, 'source', source), resolved
  FROM doubles
)
