-- An approved credit note without a row. Amount: as it ought to be posted.
found (tenant, period, amount, currency, refs, detail, resolved) AS (
  SELECT tenant, service_period, amount_pico, currency, json_array(credit_note_id),
    json_object('credit_note_id', credit_note_id, 'source', source), 0
  FROM credit_notes n WHERE status = 'approved' AND NOT EXISTS (SELECT 1 FROM postings p
    WHERE p.source_type = 'credit_note' AND p.source = n.source AND p.tenant = n.tenant
    AND p.source_ref = n.credit_note_id)
)
