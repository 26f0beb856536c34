-- An hour's total below 0 that approved credit notes do not explain.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, total, currency, json_array(), json_object(), 0
  FROM negative WHERE NOT by_credit
)
