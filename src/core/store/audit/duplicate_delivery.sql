-- An event id that was delivered again with the same payload, once per delivery. It did no harm.
SELECT u.tenant, u.occurred_at - u.occurred_at % 3600000 AS period, 0 AS amount, u.currency,
       json_array(d.event_id, CAST(d.duplicate_id AS TEXT)) AS refs, json_object('event_id', d.event_id) AS detail,
       0 AS resolved
FROM usage_duplicates d
JOIN usage_events u ON u.tenant = d.tenant AND u.event_id = d.event_id AND u.source = d.source
WHERE u.tenant BETWEEN :tenant AND :tenant_to
  AND u.occurred_at >= :from AND u.occurred_at < :to
ORDER BY u.tenant, period, d.event_id, d.duplicate_id
