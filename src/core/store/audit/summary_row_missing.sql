-- An hour of the ledger without a summary. Amount: the ledger's total.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, total, currency, json_array(), json_object(), 0
  FROM totals t WHERE NOT EXISTS (SELECT 1 FROM tenant_cost_summary s WHERE s.tenant = t.tenant
    AND s.period = t.period AND s.currency = t.currency)
)
