-- An hour below zero for which no approved credit note accounts.
SELECT tenant, period, total AS amount, currency, json_array() AS refs,
       json_object('usage_pico', usage, 'credits_pico', credits) AS detail,
       0 AS resolved
FROM (
  SELECT l.tenant, l.service_period AS period, l.currency, pico_sum(l.amount_pico) AS total,
         pico_sum(iif((l.source_type = 'usage' OR l.reprices IS NOT NULL) AND NOT l.reversed,
                      l.amount_pico, 0)) AS usage,
         -- a note counts once, whatever often it was posted
         pico_sum(iif(l.source_type = 'credit_note' AND NOT l.reversed
                      AND EXISTS (SELECT 1 FROM credit_notes n
                                  WHERE n.credit_note_id = l.source_ref AND n.source = l.source
                                    AND n.tenant = l.tenant AND n.status = 'approved')
                      AND NOT EXISTS (SELECT 1 FROM duplicate d WHERE d.entry_id = l.entry_id
                                      AND d.right_entry IS NOT NULL),
                      l.amount_pico, 0)) AS credits
  FROM ledger l
  WHERE l.tenant BETWEEN :tenant AND :tenant_to
    AND l.service_period >= :from AND l.service_period < :to
    -- only hours below zero, so that what is costly to tell is looked up for these alone
    AND (l.tenant, l.service_period, l.currency) IN (
      SELECT n.tenant, n.service_period, n.currency FROM cost_ledger n
      WHERE n.tenant BETWEEN :tenant AND :tenant_to
        AND n.service_period >= :from AND n.service_period < :to
      GROUP BY n.tenant, n.service_period, n.currency
      HAVING pico_sign(pico_sum(n.amount_pico)) < 0)
  GROUP BY l.tenant, l.service_period, l.currency
)
WHERE pico_sign(pico_sub(total, credits)) < 0 OR pico_sign(usage) < 0
ORDER BY tenant, period, currency
