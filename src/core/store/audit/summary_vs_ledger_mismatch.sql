-- The dashboard's total of a tenant's hour is not the sum of the ledger's rows.
SELECT tenant, period, pico_sub(summary, ledger) AS amount, currency, json_array() AS refs,
       json_object('summary_pico', summary, 'ledger_pico', ledger) AS detail,
       0 AS resolved
FROM (
  SELECT s.tenant, s.period, s.currency,
         pico_of(s.service_total_whole, s.service_total_pico) AS summary,
         (SELECT pico_sum(l.amount_pico) FROM cost_ledger l
          WHERE l.tenant = s.tenant AND l.service_period = s.period
            AND l.currency = s.currency) AS ledger
  FROM tenant_cost_summary s
  WHERE s.tenant BETWEEN :tenant AND :tenant_to AND s.period >= :from AND s.period < :to
)
WHERE pico_cmp(summary, ledger) <> 0
ORDER BY tenant, period, currency
