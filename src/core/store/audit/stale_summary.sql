-- A summary of our own that has not seen the newest row of its hour, by service or by posting.
SELECT tenant, period, NULL AS amount, currency, json_array() AS refs,
       json_object('watermark', CAST(watermark AS TEXT), 'newest', CAST(newest AS TEXT)) AS detail,
       0 AS resolved
FROM (
  SELECT s.tenant, s.period, s.currency, s.watermark,
         max(coalesce((SELECT max(l.entry_id) FROM cost_ledger l WHERE l.tenant = s.tenant
                       AND l.service_period = s.period AND l.currency = s.currency), 0),
             coalesce((SELECT max(l.entry_id) FROM cost_ledger l WHERE l.tenant = s.tenant
                       AND l.posting_period = s.period AND l.currency = s.currency), 0)) AS newest
  FROM tenant_cost_summary s
  WHERE s.source = '' AND s.tenant BETWEEN :tenant AND :tenant_to
    AND s.period >= :from AND s.period < :to
)
WHERE newest > watermark
ORDER BY tenant, period, currency
