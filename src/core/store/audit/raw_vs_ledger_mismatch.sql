-- Use in the ledger less raw use, per hour, where they differ.
raw_totals AS (
  SELECT tenant, period, currency, pico_sum(cost) AS raw FROM raw_use GROUP BY 1, 2, 3
),
use_totals AS (
  SELECT tenant, period, currency, pico_sum(amount_pico) AS used FROM use_rows GROUP BY 1, 2, 3
),
units AS (
  SELECT tenant, period, currency FROM raw_totals UNION
  SELECT tenant, period, currency FROM use_totals
),
compared AS (
  SELECT tenant, period, currency, coalesce(raw, '0') AS raw, coalesce(used, '0') AS used
  FROM units LEFT JOIN raw_totals USING (tenant, period, currency)
  LEFT JOIN use_totals USING (tenant, period, currency)
),
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, pico_sub(used, raw), currency, json_array(),
    json_object('raw_pico', raw, 'ledger_usage_pico', used), 0
  FROM compared WHERE pico_cmp(used, raw) <> 0
)
