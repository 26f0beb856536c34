-- What the checks have in common. Each check is a SELECT that goes on after this.
--
-- Parameters: :tenant to :tenant_to (both the same for one, else the whole range), :from, :to (of
-- the finding's period, half-open), :now, :grace (age at which an event should be posted), times in
-- ms. Amounts are pico; pico_* calculate exactly, see sqlite_pico.h. price_id_at() is the price book's
-- row for a use; NULL: none covers it.
--
-- A check gives the columns tenant, period, amount, currency, refs (JSON array), detail (JSON
-- object; amounts as NAME_pico) and resolved: 1 when the source of it is reversed or decided
-- already.
WITH
scope (tenant, tenant_to, hour_from, hour_to, now, grace) AS (
  SELECT :tenant, :tenant_to, :from, :to, :now, :grace
),
-- The ledger, each row with whether it was taken back (and that not taken back in turn). Our own
-- reversals name the row; another system's name it by its id and have the opposite amount.
ledger AS NOT MATERIALIZED (
  SELECT l.entry_id, l.source, l.given_id, l.tenant, l.source_type, l.source_ref,
         l.service_period, l.posting_period, l.posted_at, l.amount_pico, l.currency, l.price_id,
         l.reverses, l.reprices, l.repair_id, l.payload_hash, l.job_id, l.retry_count,
         coalesce(l.given_id, CAST(l.entry_id AS TEXT)) AS ledger_id,
         EXISTS (SELECT 1 FROM cost_ledger r WHERE r.reverses = l.entry_id
                 AND NOT EXISTS (SELECT 1 FROM cost_ledger b WHERE b.reverses = r.entry_id
                                 AND NOT EXISTS (SELECT 1 FROM cost_ledger c
                                                 WHERE c.reverses = b.entry_id)))
         OR (l.given_id IS NOT NULL
             AND EXISTS (SELECT 1 FROM cost_ledger r WHERE r.source_ref = l.given_id
                         AND r.tenant = l.tenant AND r.source_type = 'reversal'
                         AND r.source = l.source AND r.reverses IS NULL
                         AND r.amount_pico = -l.amount_pico
                         AND NOT EXISTS (SELECT 1 FROM cost_ledger b
                                         WHERE b.reverses = r.entry_id))) AS reversed
  FROM cost_ledger l
),
-- Accepted events, each with the payload that counts: the first, or the one a person put in its
-- place; what it costs at the price of its posting (a later price correction included), or, not
-- posted, at the book's; NULL: no price covers it.
event AS NOT MATERIALIZED (
  SELECT e.*, p.price_id,
         CASE WHEN e.unit_pico IS NOT NULL THEN e.own_currency ELSE p.currency END AS currency,
         pico_mul(e.units, coalesce(e.unit_pico, p.unit_pico)) AS cost
  FROM (
    SELECT u.usage_id, u.source, u.tenant, u.event_id, u.received_at, u.job_id,
           iif(c.conflict_id IS NULL, u.vendor, c.vendor) AS vendor,
           iif(c.conflict_id IS NULL, u.model, c.model) AS model,
           iif(c.conflict_id IS NULL, u.meter, c.meter) AS meter,
           iif(c.conflict_id IS NULL, u.units, c.units) AS units,
           iif(c.conflict_id IS NULL, u.context_tokens, c.context_tokens) AS context_tokens,
           iif(c.conflict_id IS NULL, u.unit_pico, c.unit_pico) AS unit_pico,
           iif(c.conflict_id IS NULL, u.currency, c.currency) AS own_currency,
           iif(c.conflict_id IS NULL, u.occurred_at, c.occurred_at) AS occurred_at,
           iif(c.conflict_id IS NULL, u.occurred_at, c.occurred_at)
             - iif(c.conflict_id IS NULL, u.occurred_at, c.occurred_at) % 3600000 AS period,
           EXISTS (SELECT 1 FROM cost_ledger l WHERE l.source_ref = u.event_id
                   AND l.tenant = u.tenant AND l.source_type = 'usage'
                   AND l.source = u.source) AS posted,
           EXISTS (SELECT 1 FROM ledger l WHERE l.source_ref = u.event_id
                   AND l.tenant = u.tenant AND l.source_type = 'usage'
                   AND l.source = u.source AND NOT l.reversed) AS charged
    FROM usage_events u
    LEFT JOIN usage_conflicts c ON c.conflict_id = (
      SELECT x.conflict_id FROM usage_conflicts x
      WHERE x.tenant = u.tenant AND x.event_id = u.event_id AND x.source = u.source
        AND x.state = 'replaced' ORDER BY x.decided_at DESC, x.conflict_id DESC LIMIT 1)
    WHERE u.tenant BETWEEN :tenant AND :tenant_to
      -- early, so that the rest is looked up for the hours in question alone
      AND ((u.occurred_at >= :from AND u.occurred_at < :to) OR c.conflict_id IS NOT NULL)
  ) e
  LEFT JOIN prices p ON e.unit_pico IS NULL AND p.price_id = coalesce(
    (SELECT coalesce(r.price_id, l.price_id)
     FROM ledger l LEFT JOIN ledger r ON r.reprices = l.entry_id AND NOT r.reversed
     WHERE l.source_ref = e.event_id AND l.tenant = e.tenant AND l.source_type = 'usage'
       AND l.source = e.source AND NOT l.reversed
     ORDER BY l.posted_at, l.entry_id, r.entry_id DESC LIMIT 1),
    price_id_at(e.vendor, e.model, e.meter, e.occurred_at, e.context_tokens, e.own_currency))
),
-- Events that should have been posted and were not. What an operator's freeze holds back does not
-- count, an import's own freeze does not hold.
missing AS NOT MATERIALIZED (
  SELECT e.* FROM event e
  WHERE NOT e.posted AND e.cost IS NOT NULL AND e.received_at < :now - :grace
    AND NOT EXISTS (
      SELECT 1 FROM freezes f WHERE f.tenant = e.tenant AND f.origin = 'operator'
        AND f.lifted_at IS NULL AND (f.until IS NULL OR f.until > :now)
        AND ((e.period >= f.period_from AND e.period < f.period_to)
          -- the hour that it would be billed in: the first without an issued invoice
          OR EXISTS (SELECT 1 FROM (
               SELECT min(h) AS hour FROM (
                 SELECT e.period AS h
                 UNION ALL SELECT i.period + 3600000 FROM invoice_hours i
                   WHERE i.tenant = e.tenant AND i.currency = e.currency AND i.period >= e.period
                     AND i.issued = 1)
               WHERE NOT EXISTS (SELECT 1 FROM invoice_hours i WHERE i.tenant = e.tenant
                   AND i.currency = e.currency AND i.period = h AND i.issued = 1))
             WHERE hour >= f.period_from AND hour < f.period_to)))
),
-- Events that the ledger should charge.
counted AS NOT MATERIALIZED (
  SELECT e.source, e.tenant, e.event_id, e.period, e.currency, e.cost FROM event e
  WHERE e.posted AND e.charged AND e.cost IS NOT NULL
  UNION ALL
  SELECT e.source, e.tenant, e.event_id, e.period, e.currency, e.cost FROM missing e
),
-- Second rows of one source, and the row that is right: the earliest in force. A source that was
-- not accepted has none that is right.
duplicate AS NOT MATERIALIZED (
  SELECT l.*, (
    SELECT k.entry_id FROM ledger k
    WHERE k.source_ref = l.source_ref AND k.tenant = l.tenant AND k.source_type = l.source_type
      AND k.source = l.source AND k.entry_id <> l.entry_id
      AND (k.posted_at, coalesce(k.given_id, ''), k.entry_id)
        < (l.posted_at, coalesce(l.given_id, ''), l.entry_id)
      AND (l.reversed OR NOT k.reversed)
    ORDER BY k.reversed, k.posted_at, coalesce(k.given_id, ''), k.entry_id LIMIT 1) AS right_entry
  FROM ledger l
  -- Our own rows that were reversed gave way to another payload.
  WHERE (l.given_id IS NOT NULL OR NOT l.reversed)
    AND CASE l.source_type
      WHEN 'usage' THEN EXISTS (SELECT 1 FROM usage_events u WHERE u.tenant = l.tenant
        AND u.event_id = l.source_ref AND u.source = l.source)
      WHEN 'credit_note' THEN EXISTS (SELECT 1 FROM credit_notes n
        WHERE n.credit_note_id = l.source_ref AND n.source = l.source AND n.tenant = l.tenant
          AND n.status = 'approved')
      ELSE 0 END
)
