-- A freeze of an operator that is in force. Those of imports are part of a repair.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT f.tenant, f.period_from, NULL, '', json_array(CAST(f.freeze_id AS TEXT)),
    json_object('freeze_id', CAST(f.freeze_id AS TEXT), 'reason', f.reason, 'by', f.actor), 0
  FROM freezes f, scope WHERE f.origin = 'operator' AND f.lifted_at IS NULL
    AND (f.until IS NULL OR f.until > scope.now)
)
