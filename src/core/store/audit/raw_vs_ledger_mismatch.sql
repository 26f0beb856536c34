-- Per tenant, hour and currency: what the ledger charges for use (usage rows in force and their
-- price corrections) is not what the accepted events cost.
SELECT tenant, period, pico_sub(charged, raw) AS amount, currency, json_array() AS refs,
       json_object('raw_pico', raw, 'ledger_usage_pico', charged) AS detail,
       0 AS resolved
FROM (
  SELECT tenant, period, currency, pico_sum(cost) AS raw, pico_sum(amount) AS charged
  FROM (
    SELECT tenant, period, currency, cost, 0 AS amount FROM counted
    WHERE period >= :from AND period < :to
    UNION ALL
    SELECT l.tenant, l.service_period, l.currency, 0, l.amount_pico FROM ledger l
    WHERE l.tenant BETWEEN :tenant AND :tenant_to
      AND l.service_period >= :from AND l.service_period < :to
      AND (l.source_type = 'usage' OR l.reprices IS NOT NULL) AND NOT l.reversed
  )
  GROUP BY tenant, period, currency
)
WHERE pico_cmp(charged, raw) <> 0
ORDER BY tenant, period, currency
