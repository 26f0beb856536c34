-- An accepted, priced event without a row of the ledger, although it is old enough to have one.
SELECT e.tenant, e.period, e.cost AS amount, e.currency, json_array(e.event_id) AS refs,
       json_object('event_id', e.event_id, 'source', e.source, 'late_after_issue', json(iif(EXISTS (
         SELECT 1 FROM invoice_hours h WHERE h.tenant = e.tenant AND h.currency = e.currency
           AND h.period = e.period AND h.issued = 1), 'true', 'false'))) AS detail,
       0 AS resolved
FROM missing e
WHERE e.period >= :from AND e.period < :to
ORDER BY e.tenant, e.period, e.event_id
