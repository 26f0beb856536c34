-- An event that no price covers, older than one hour.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT e.tenant, period, NULL, '', json_array(event_id),
    json_object('event_id', event_id, 'source', source), 0
  FROM events e, scope WHERE NOT posted AND cost IS NULL AND received_at < scope.now - 3600000
)
