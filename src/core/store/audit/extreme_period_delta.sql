-- A jump between the summaries of consecutive hours: by 1.00 or more, and to three times as much
-- or to the other side of 0. A fall towards 0 is none. Amount: the change.
pairs AS (
  SELECT b.tenant, b.period, b.currency, a.total AS previous, b.total AS current,
    pico_sub(b.total, a.total) AS change,
    iif(pico_sign(a.total) < 0, pico_sub(0, a.total), a.total) AS size_before,
    iif(pico_sign(b.total) < 0, pico_sub(0, b.total), b.total) AS size_after
  FROM summaries a JOIN summaries b ON b.tenant = a.tenant AND b.currency = a.currency
    AND b.period = a.period + 3600000
  WHERE pico_sign(a.total) <> 0
),
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, change, currency, json_array(),
    json_object('previous_pico', previous, 'current_pico', current), 0
  FROM pairs
  WHERE pico_cmp(iif(pico_sign(change) < 0, pico_sub(0, change), change), 1000000000000) >= 0
    AND (pico_cmp(size_after, pico_add(size_before, pico_add(size_before, size_before))) >= 0
      OR pico_sign(previous) = -pico_sign(current))
)
