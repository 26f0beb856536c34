-- A summary that differs from the ledger by hour of service. Amount: summary less ledger.
compared AS (
  SELECT s.tenant, s.period, s.currency, s.total AS summary, coalesce(t.total, '0') AS ledger
  FROM summaries s LEFT JOIN totals t USING (tenant, period, currency)
),
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, pico_sub(summary, ledger), currency, json_array(),
    json_object('summary_pico', summary, 'ledger_pico', ledger), 0
  FROM compared WHERE pico_cmp(summary, ledger) <> 0
)
