-- The ledger has rows of a tenant's hour, and the dashboard has none.
SELECT l.tenant, l.service_period AS period, pico_sum(l.amount_pico) AS amount, l.currency,
       json_array() AS refs, json_object('ledger_rows', count(*)) AS detail, 0 AS resolved
FROM cost_ledger l
WHERE l.tenant BETWEEN :tenant AND :tenant_to
  AND l.service_period >= :from AND l.service_period < :to
  AND NOT EXISTS (SELECT 1 FROM tenant_cost_summary s WHERE s.tenant = l.tenant
                  AND s.period = l.service_period AND s.currency = l.currency)
GROUP BY l.tenant, l.service_period, l.currency
ORDER BY l.tenant, l.service_period, l.currency
