-- Drafts and issued invoices that differ from the billed total of their hours, rounded to the
-- minor unit. An imported summary without a billed total stands in with the total it has.
hours AS (
  SELECT h.invoice_key, h.tenant, h.currency, h.period,
    coalesce(s.billed, s.total, '0') AS billed,
    s.summary_id IS NULL AND EXISTS (SELECT 1 FROM totals t WHERE t.tenant = h.tenant
      AND t.currency = h.currency AND t.period = h.period) AS unknown
  FROM invoice_hours h LEFT JOIN summaries s ON s.tenant = h.tenant AND s.currency = h.currency
    AND s.period = h.period
),
billed AS (
  SELECT invoice_key, pico_sum(billed) AS exact FROM hours GROUP BY 1 HAVING max(unknown) = 0
),
compared AS (
  SELECT i.*, pico_of(i.total_whole, i.total_pico) AS total,
    pico_round(b.exact, pico_digits(i.currency)) AS dashboard
  FROM invoices i JOIN billed b USING (invoice_key) WHERE i.state IN ('draft', 'issued')
),
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period_start, pico_sub(total, dashboard), currency,
    json_array(coalesce(given_id, CAST(invoice_key AS TEXT))),
    json_object('invoice_id', coalesce(given_id, CAST(invoice_key AS TEXT)), 'state', state,
      'invoice_pico', total, 'dashboard_pico', dashboard), 0
  FROM compared WHERE pico_cmp(total, dashboard) <> 0
)
