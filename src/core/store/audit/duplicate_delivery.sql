-- An event that was delivered again with the same payload; it counts once.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT d.tenant, d.occurred_at - d.occurred_at % 3600000, '0', coalesce(u.currency, ''),
    json_array(d.event_id), json_object('event_id', d.event_id, 'source', d.source), 0
  FROM usage_duplicates d JOIN usage_events u ON u.tenant = d.tenant AND u.event_id = d.event_id
    AND u.source = d.source
)
