-- Usage rows in force and events of an hour, where their counts differ.
rows_by_hour AS (
  SELECT tenant, service_period AS period, count(*) AS n FROM postings
  WHERE source_type = 'usage' AND NOT back GROUP BY 1, 2
),
events_by_hour AS (SELECT tenant, period, count(*) AS n FROM raw_use GROUP BY 1, 2),
units AS (
  SELECT tenant, period FROM rows_by_hour UNION SELECT tenant, period FROM events_by_hour
),
compared AS (
  SELECT u.tenant, u.period, coalesce(r.n, 0) AS postings, coalesce(e.n, 0) AS events
  FROM units u LEFT JOIN rows_by_hour r USING (tenant, period)
  LEFT JOIN events_by_hour e USING (tenant, period)
),
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, period, NULL, '', json_array(),
    json_object('postings', postings, 'events', events, 'ratio', CASE WHEN events > 0 THEN
      printf('%d.%04d', postings / events, (postings % events * 10000 + events / 2) / events) END),
    0
  FROM compared WHERE postings <> events
)
