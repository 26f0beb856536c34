-- An event that was delivered again with another payload. Amount: cost of the rejected payload
-- less cost of the kept one.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT c.tenant, u.occurred_at - u.occurred_at % 3600000,
    pico_sub(pico_mul(c.units, coalesce(c.unit_pico, b.unit_pico)),
      pico_mul(u.units, coalesce(u.unit_pico, b.unit_pico))),
    coalesce(u.currency, c.currency, b.currency, ''),
    json_array(c.event_id, CAST(c.conflict_id AS TEXT)),
    json_object('event_id', c.event_id, 'conflict_id', CAST(c.conflict_id AS TEXT),
      'kept_units', u.units, 'rejected_units', c.units, 'state', c.state), c.state <> 'open'
  FROM usage_conflicts c
  JOIN usage_events u ON u.tenant = c.tenant AND u.event_id = c.event_id AND u.source = c.source
  LEFT JOIN priced p ON p.usage_id = u.usage_id AND (u.unit_pico IS NULL OR c.unit_pico IS NULL)
  LEFT JOIN prices b ON b.price_id = p.book_price
)
