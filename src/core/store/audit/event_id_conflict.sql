-- An event id that was delivered again with another payload: kept apart until a person decides.
-- The amount is what it would cost more than the payload that holds.
SELECT tenant, period, iif(kept_currency IS rejected_currency, pico_sub(rejected, kept), NULL)
         AS amount, kept_currency AS currency, json_array(event_id) AS refs,
       json_object('event_id', event_id, 'conflict_id', CAST(conflict_id AS TEXT),
                   'kept_units', kept_units, 'rejected_units', rejected_units,
                   'state', state) AS detail,
       state <> 'open' AS resolved
FROM (
  SELECT c.tenant, c.event_id, c.conflict_id, c.state,
         u.occurred_at - u.occurred_at % 3600000 AS period,
         u.units AS kept_units, c.units AS rejected_units,
         iif(u.unit_pico IS NULL, kp.currency, u.currency) AS kept_currency,
         iif(c.unit_pico IS NULL, rp.currency, c.currency) AS rejected_currency,
         pico_mul(u.units, coalesce(u.unit_pico, kp.unit_pico)) AS kept,
         pico_mul(c.units, coalesce(c.unit_pico, rp.unit_pico)) AS rejected
  FROM usage_conflicts c
  JOIN usage_events u ON u.tenant = c.tenant AND u.event_id = c.event_id AND u.source = c.source
  LEFT JOIN prices kp ON u.unit_pico IS NULL AND kp.price_id =
    price_id_at(u.vendor, u.model, u.meter, u.occurred_at, u.context_tokens, u.currency)
  LEFT JOIN prices rp ON c.unit_pico IS NULL AND rp.price_id =
    price_id_at(c.vendor, c.model, c.meter, c.occurred_at, c.context_tokens, c.currency)
  WHERE c.tenant BETWEEN :tenant AND :tenant_to
)
WHERE period >= :from AND period < :to
ORDER BY tenant, period, event_id, conflict_id
