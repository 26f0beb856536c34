-- From one hour to the next the dashboard's total changed by 1.00 or more, and is three times as
-- large or has another sign. A fall towards 0 is none, and nothing is compared with 0.
SELECT tenant, period, delta AS amount, currency, json_array() AS refs,
       json_object('previous_pico', previous, 'current_pico', current) AS detail,
       0 AS resolved
FROM (
  SELECT tenant, period, currency, previous, current, pico_sub(current, previous) AS delta,
         iif(pico_sign(previous) < 0, pico_sub(0, previous), previous) AS previous_size,
         iif(pico_sign(current) < 0, pico_sub(0, current), current) AS current_size
  FROM (
    SELECT s.tenant, s.period, s.currency,
           pico_of(p.service_total_whole, p.service_total_pico) AS previous,
           pico_of(s.service_total_whole, s.service_total_pico) AS current
    FROM tenant_cost_summary s
    JOIN tenant_cost_summary p ON p.tenant = s.tenant AND p.period = s.period - 3600000
      AND p.currency = s.currency
    WHERE s.tenant BETWEEN :tenant AND :tenant_to AND s.period >= :from AND s.period < :to
  )
)
WHERE pico_sign(previous) <> 0
  AND pico_cmp(iif(pico_sign(delta) < 0, pico_sub(0, delta), delta), 1000000000000) >= 0
  AND (pico_cmp(current_size, pico_add(previous_size, pico_add(previous_size, previous_size))) >= 0
    OR pico_sign(current) = -pico_sign(previous))
ORDER BY tenant, period, currency
