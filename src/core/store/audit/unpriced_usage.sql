-- An event that no row of the price book covers, an hour and longer after it came.
SELECT e.tenant, e.period, NULL AS amount, e.own_currency AS currency,
       json_array(e.event_id) AS refs,
       json_object('event_id', e.event_id, 'vendor', e.vendor, 'model', e.model, 'meter', e.meter,
                   'units', e.units) AS detail,
       0 AS resolved
FROM event e
WHERE NOT e.posted AND e.cost IS NULL AND e.received_at < :now - 3600000
  AND e.period >= :from AND e.period < :to
ORDER BY e.tenant, e.period, e.event_id
