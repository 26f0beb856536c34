-- A draft or issued invoice whose total is not what the dashboard bills for its hours, rounded to
-- the minor unit. An imported summary that knows only one total stands in with that. An hour that
-- should have a summary and has none can't be compared: summary_row_missing tells.
SELECT tenant, period, pico_sub(total, billed) AS amount, currency, json_array(invoice_id) AS refs,
       json_object('invoice_id', invoice_id, 'state', state, 'invoice_pico', total,
                   'billed_pico', billed) AS detail,
       0 AS resolved
FROM (
  SELECT i.tenant, i.period_start AS period, i.currency, i.state,
         coalesce(i.given_id, CAST(i.invoice_key AS TEXT)) AS invoice_id,
         pico_of(i.total_whole, i.total_pico) AS total,
         (SELECT pico_round(pico_sum(pico_of(
                   coalesce(s.billed_total_whole, s.service_total_whole),
                   coalesce(s.billed_total_pico, s.service_total_pico))), pico_digits(i.currency))
          FROM tenant_cost_summary s
          WHERE s.tenant = i.tenant AND s.currency = i.currency
            AND s.period >= i.period_start AND s.period < i.period_end) AS billed
  FROM invoices i
  WHERE i.state IN ('draft', 'issued') AND i.tenant BETWEEN :tenant AND :tenant_to
    AND i.period_start >= :from AND i.period_start < :to
    AND NOT EXISTS (
      SELECT 1 FROM invoice_hours h
      WHERE h.invoice_key = i.invoice_key
        AND NOT EXISTS (SELECT 1 FROM tenant_cost_summary s WHERE s.tenant = h.tenant
                        AND s.period = h.period AND s.currency = h.currency)
        AND (i.source <> '' OR EXISTS (SELECT 1 FROM cost_ledger l WHERE l.tenant = h.tenant
                                       AND l.posting_period = h.period
                                       AND l.currency = h.currency)))
)
WHERE pico_cmp(total, billed) <> 0
ORDER BY tenant, period, invoice_id
