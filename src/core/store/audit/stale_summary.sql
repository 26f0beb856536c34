-- A summary of our own that has not seen the newest ledger row of its hour.
newest AS (
  SELECT s.tenant, s.period, s.currency, s.watermark, max(
    coalesce((SELECT max(entry_id) FROM cost_ledger l WHERE l.tenant = s.tenant
      AND l.service_period = s.period AND l.currency = s.currency), 0),
    coalesce((SELECT max(entry_id) FROM cost_ledger l WHERE l.tenant = s.tenant
      AND l.posting_period = s.period AND l.currency = s.currency), 0)) AS entry_id
  FROM tenant_cost_summary s WHERE s.source = ''
),
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, NULL, currency, json_array(),
    json_object('watermark', watermark, 'newest', entry_id), 0
  FROM newest WHERE watermark < entry_id
)
