-- Definitions that the checks share; each check's text follows this one. Parameters: ?1 tenant
-- ('' = all), ?2 and ?3 the hours [from, to), ?4 now, ?5 the age in ms from which an event that
-- is not posted counts as missing.
WITH RECURSIVE
scope (tenant, hour_from, hour_to, now, grace) AS (SELECT ?1, ?2, ?3, ?4, ?5),

-- Which row a reversal takes back. An imported one names it by its given id.
reversal_of (entry_id, target) AS (
  SELECT entry_id, reverses FROM cost_ledger WHERE reverses IS NOT NULL
  UNION ALL
  SELECT r.entry_id, o.entry_id FROM cost_ledger r
  JOIN cost_ledger o ON o.given_id = r.source_ref AND o.source = r.source
  WHERE r.source_type = 'reversal' AND r.reverses IS NULL
),
-- A reversal may be reversed in turn: a row is taken back when the chain after it is odd.
chain (root, tail, depth) AS (
  SELECT target, entry_id, 1 FROM reversal_of
  UNION ALL
  SELECT c.root, r.entry_id, c.depth + 1 FROM chain c
  JOIN reversal_of r ON r.target = c.tail WHERE c.depth < 16
),
taken_back (entry_id) AS MATERIALIZED (
  SELECT root FROM chain GROUP BY root HAVING max(depth) % 2 = 1
),

-- Usage and credit rows, each with what stands behind it and its turn among those of its source.
postings AS MATERIALIZED (
  SELECT l.*, coalesce(l.given_id, CAST(l.entry_id AS TEXT)) AS ledger_id,
    l.entry_id IN (SELECT entry_id FROM taken_back) AS back,
    CASE l.source_type
      WHEN 'usage' THEN EXISTS (SELECT 1 FROM usage_events u WHERE u.tenant = l.tenant
        AND u.event_id = l.source_ref AND u.source = l.source)
      ELSE EXISTS (SELECT 1 FROM credit_notes n WHERE n.credit_note_id = l.source_ref
        AND n.source = l.source AND n.tenant = l.tenant AND n.status = 'approved')
    END AS has_source,
    row_number() OVER source_rows AS turn,
    first_value(coalesce(l.given_id, CAST(l.entry_id AS TEXT))) OVER source_rows AS first_id,
    -- Of the payload that replaced the first one.
    EXISTS (SELECT 1 FROM usage_conflicts c WHERE c.tenant = l.tenant
      AND c.event_id = l.source_ref AND c.source = l.source AND c.state = 'replaced'
      AND l.idempotency_key = 'usage|' || l.tenant || '|' || l.source_ref || '|' || c.conflict_id)
      AS replaces
  FROM cost_ledger l WHERE l.source_type IN ('usage', 'credit_note')
  WINDOW source_rows AS (PARTITION BY l.source, l.tenant, l.source_type, l.source_ref
    ORDER BY l.posted_at, coalesce(l.given_id, ''), l.entry_id)
),
in_force (source, tenant, source_type, source_ref, rows) AS MATERIALIZED (
  SELECT source, tenant, source_type, source_ref, count(*) FILTER (WHERE NOT back)
  FROM postings GROUP BY 1, 2, 3, 4
),
-- Second rows of a source. Open: more than one of the source is in force.
doubles AS MATERIALIZED (
  SELECT p.*, p.back OR f.rows < 2 AS resolved FROM postings p
  JOIN in_force f USING (source, tenant, source_type, source_ref)
  WHERE p.turn > 1 AND p.has_source AND NOT p.replaces
),

-- Rows that make up the use of an hour: usage, repricing, and what takes these back.
use_rows AS MATERIALIZED (
  SELECT tenant, service_period AS period, currency, amount_pico FROM cost_ledger
  WHERE source_type IN ('usage', 'reprice')
  UNION ALL
  SELECT r.tenant, r.service_period, r.currency, r.amount_pico FROM cost_ledger r
  JOIN chain c ON c.tail = r.entry_id
  JOIN cost_ledger o ON o.entry_id = c.root AND o.source_type IN ('usage', 'reprice')
),

-- Events with the payload that holds, the price of it, and how they stand.
priced AS (
  SELECT u.usage_id, u.source, u.tenant, u.event_id, u.received_at,
    u.occurred_at - u.occurred_at % 3600000 AS period,
    coalesce(c.units, u.units) AS units,
    CASE WHEN c.conflict_id IS NULL THEN u.unit_pico ELSE c.unit_pico END AS own_price,
    coalesce(c.currency, u.currency) AS own_currency,
    (SELECT p.entry_id FROM postings p WHERE p.source_type = 'usage' AND p.source = u.source
      AND p.tenant = u.tenant AND p.source_ref = u.event_id ORDER BY p.back, p.turn LIMIT 1)
      AS entry_id,
    -- Without a price of its own and not posted yet: the price book's.
    (SELECT b.price_id FROM prices b WHERE b.model = u.model AND b.meter = u.meter
      AND b.vendor = u.vendor AND b.effective_from <= u.occurred_at
      AND (b.above_tokens = 0 OR b.above_tokens < u.context_tokens)
      AND u.currency IN ('', b.currency) IS NOT 0
      ORDER BY b.above_tokens DESC, b.effective_from DESC, b.price_id DESC LIMIT 1) AS book_price
  FROM usage_events u
  LEFT JOIN usage_conflicts c ON c.conflict_id = (SELECT max(conflict_id) FROM usage_conflicts x
    WHERE x.tenant = u.tenant AND x.event_id = u.event_id AND x.source = u.source
    AND x.state = 'replaced')
),
events AS MATERIALIZED (
  SELECT e.usage_id, e.source, e.tenant, e.event_id, e.period, e.received_at, e.units,
    e.entry_id IS NOT NULL AS posted,
    e.entry_id IS NOT NULL AND l.entry_id NOT IN (SELECT entry_id FROM taken_back) AS in_force,
    coalesce(e.own_currency, b.currency, l.currency, '') AS currency,
    pico_mul(e.units, coalesce(e.own_price, b.unit_pico)) AS cost,
    EXISTS (SELECT 1 FROM freezes f WHERE f.tenant = e.tenant AND f.origin = 'operator'
      AND f.lifted_at IS NULL AND (f.until IS NULL OR f.until > (SELECT now FROM scope))
      AND e.period >= f.period_from AND e.period < f.period_to) AS held
  FROM priced e
  LEFT JOIN cost_ledger l ON l.entry_id = e.entry_id
  LEFT JOIN prices b ON e.own_price IS NULL AND b.price_id = coalesce(l.price_id, e.book_price)
),
missing AS MATERIALIZED (
  SELECT e.* FROM events e, scope WHERE NOT posted AND cost IS NOT NULL AND NOT held
    AND received_at < scope.now - scope.grace
),
-- What ought to be in the ledger: what is, unless waived, and what is missing.
raw_use AS MATERIALIZED (
  SELECT source, tenant, event_id, period, currency, cost FROM events WHERE in_force
  UNION ALL
  SELECT source, tenant, event_id, period, currency, cost FROM missing
),

-- Totals of the ledger by hour of service.
totals AS MATERIALIZED (
  SELECT tenant, service_period AS period, currency, pico_sum(amount_pico) AS total
  FROM cost_ledger GROUP BY 1, 2, 3
),
summaries AS (
  SELECT *, pico_of(service_total_whole, service_total_pico) AS total,
    pico_of(billed_total_whole, billed_total_pico) AS billed
  FROM tenant_cost_summary
),
negative AS MATERIALIZED (
  SELECT t.tenant, t.period, t.currency, t.total,
    pico_sign(pico_sub(t.total, (SELECT pico_sum(l.amount_pico) FROM cost_ledger l
      WHERE l.tenant = t.tenant AND l.service_period = t.period AND l.currency = t.currency
      AND (l.entry_id IN (SELECT entry_id FROM postings WHERE source_type = 'credit_note'
          AND has_source)
        OR l.entry_id IN (SELECT c.tail FROM chain c JOIN postings p ON p.entry_id = c.root
          WHERE p.source_type = 'credit_note' AND p.has_source))))) >= 0
    AND pico_sign((SELECT pico_sum(u.amount_pico) FROM use_rows u WHERE u.tenant = t.tenant
      AND u.period = t.period AND u.currency = t.currency)) >= 0 AS by_credit
  FROM totals t WHERE pico_sign(t.total) < 0
),
