-- Requests whose end nobody knows: they may have been billed. The amount is the most that they can
-- have cost: each byte of the request one token of input, and all the output that it allows. NULL:
-- a request that sets no bound to its output, or has no price.
SELECT tenant, period, iif(count(*) = count(worst) AND min(currency) IS max(currency),
                           pico_sum(worst), NULL) AS amount,
       iif(min(currency) IS max(currency), min(currency), NULL) AS currency,
       json_group_array(CAST(job_id AS TEXT)) AS refs,
       json_object('attempts', count(*), 'without_bound', count(*) - count(worst)) AS detail,
       0 AS resolved
FROM (
  SELECT w.tenant, w.period, w.job_id, i.currency,
         iif(i.currency IS o.currency,
             pico_add(pico_mul(w.bytes, i.unit_pico), pico_mul(w.tokens, o.unit_pico)), NULL)
           AS worst
  FROM (
    SELECT n.tenant, a.started_at - a.started_at % 3600000 AS period, a.job_id, a.started_at,
           n.vendor, n.model, length(CAST(q.body AS BLOB)) AS bytes,
           coalesce(json_extract(CAST(q.body AS TEXT), '$.max_completion_tokens'),
                    json_extract(CAST(q.body AS TEXT), '$.max_output_tokens'),
                    json_extract(CAST(q.body AS TEXT), '$.max_tokens')) AS tokens
    FROM attempts a JOIN lanes n ON n.lane_id = a.lane_id
    LEFT JOIN requests q ON q.job_id = a.job_id
    WHERE a.billed = 'maybe' AND n.tenant BETWEEN :tenant AND :tenant_to
      AND a.started_at >= :from AND a.started_at < :to
    ORDER BY a.attempt_id
  ) w
  LEFT JOIN prices i ON i.price_id =
    price_id_at(w.vendor, w.model, 'input', w.started_at, w.bytes, NULL)
  LEFT JOIN prices o ON o.price_id =
    price_id_at(w.vendor, w.model, 'output', w.started_at, w.bytes, NULL)
)
GROUP BY tenant, period
ORDER BY tenant, period
