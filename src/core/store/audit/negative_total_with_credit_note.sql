-- An hour's total below 0 because of approved credit notes.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, total, currency, json_array(), json_object(), 0
  FROM negative WHERE by_credit
)
