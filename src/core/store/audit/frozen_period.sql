-- A freeze that an operator set, in force: nothing of these hours is posted. What an import freezes
-- is left out: it waits for a repair, and the other findings tell why.
SELECT f.tenant, f.period_from AS period, NULL AS amount, NULL AS currency,
       json_array(CAST(f.freeze_id AS TEXT)) AS refs,
       json_object('freeze_id', CAST(f.freeze_id AS TEXT),
                   'hours', (f.period_to - f.period_from) / 3600000, 'reason', f.reason,
                   'by', f.actor) AS detail,
       0 AS resolved
FROM freezes f
WHERE f.origin = 'operator' AND f.lifted_at IS NULL AND (f.until IS NULL OR f.until > :now)
  AND f.tenant BETWEEN :tenant AND :tenant_to AND f.period_from < :to AND f.period_to > :from
ORDER BY f.tenant, f.period_from, f.freeze_id
