-- Per tenant and hour: not as many usage rows in force as events that should have one.
SELECT tenant, period, NULL AS amount, NULL AS currency, json_array() AS refs,
       json_object('postings', postings, 'events', events,
                   -- four decimals, half to even
                   'ratio', iif(events = 0, NULL, printf('%d.%04d', rounded / 10000,
                                                         rounded % 10000))) AS detail,
       0 AS resolved
FROM (
  SELECT tenant, period, postings, events, postings * 10000 / events
         + (postings * 20000 % (2 * events) > events
            OR (postings * 20000 % (2 * events) = events
                AND postings * 10000 / events % 2 = 1)) AS rounded
  FROM (
    SELECT tenant, period, sum(posting) AS postings, sum(event) AS events
    FROM (
      SELECT tenant, period, 0 AS posting, 1 AS event FROM counted
      WHERE period >= :from AND period < :to
      UNION ALL
      SELECT l.tenant, l.service_period, 1, 0 FROM ledger l
      WHERE l.tenant BETWEEN :tenant AND :tenant_to
        AND l.service_period >= :from AND l.service_period < :to
        AND l.source_type = 'usage' AND NOT l.reversed
    )
    GROUP BY tenant, period
  )
  WHERE postings <> events
)
ORDER BY tenant, period
