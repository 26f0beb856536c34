#!/usr/bin/env bats
# examples/cost-turn and examples/crontab
# shellcheck disable=SC2154  # world.bash sets examples, and run sets stderr

bats_require_minimum_version 1.5.0

setup() {
  load world
  export PATH=$AIQ_BIN_DIR:$BATS_TEST_TMPDIR/bin:$PATH
  export AIQ_DB=$BATS_TEST_TMPDIR/aiq.db AIQ_CONFIG=$BATS_TEST_TMPDIR/aiq.toml
  : >"$AIQ_CONFIG"
  mkdir "$BATS_TEST_TMPDIR/bin"
  # A mail(1) that keeps what it was given.
  printf '#!/bin/sh\n{ printf "%%s\\n" "$@"; cat; } >>%s\n' "$BATS_TEST_TMPDIR/mail" \
    >"$BATS_TEST_TMPDIR/bin/mail"
  chmod +x "$BATS_TEST_TMPDIR/bin/mail"
}

# use_of TENANT ID TIME [CURRENCY]
use_of() {
  printf '{"event_id":"%s","tenant":"%s","model":"m","meter":"input","units":400000,' "$2" "$1"
  printf '"price_per_million":"2.50","currency":"%s","occurred_at":"%s"}\n' "${4:-USD}" "$3"
}

# A row that no event stands behind: what the audit calls an error.
ghost() {
  printf '{"ledger_id":"G1","tenant":"acme","service_period":"2026-02-03T04:00:00Z",'
  printf '"source_type":"usage","source_ref":"GHOST","amount_pico":5,"currency":"USD",'
  printf '"posted_at":"2026-02-03T05:00:00Z"}\n'
}

@test "hourly posts, says nothing, and a second time changes nothing" {
  use_of acme e1 2026-02-03T04:05:06Z | aiq usage import -
  for _ in 1 2; do
    run --separate-stderr "$examples/cost-turn" hourly
    [ "$status" -eq 0 ]
    [ -z "$output$stderr" ]
    [ "$(aiq cost summary --json | jq -r .amount)" = 1.00 ]
  done
}

@test "nightly is silent when all is well, and mails or prints errors" {
  use_of acme e1 2026-02-03T04:05:06Z | aiq usage import -
  run "$examples/cost-turn" nightly --mail ops
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  [ ! -e "$BATS_TEST_TMPDIR/mail" ]

  ghost | aiq import ledger -
  run "$examples/cost-turn" nightly --mail ops
  [ "$status" -eq 1 ]
  grep -qx ops "$BATS_TEST_TMPDIR/mail"
  grep -q posting_without_source "$BATS_TEST_TMPDIR/mail"
  run "$examples/cost-turn" nightly
  [ "$status" -eq 1 ]
  [[ $output == *posting_without_source* ]]
}

@test "monthly drafts what each tenant owes, again brings them up to date" {
  {
    use_of acme e1 2026-02-03T04:05:06Z
    use_of acme e2 2026-02-28T23:59:59Z EUR
    use_of bolt e3 2026-02-01T00:00:00Z
    use_of bolt e4 2026-03-01T00:00:00Z
  } | aiq usage import -
  run "$examples/cost-turn" monthly --month 2026-02
  [ "$status" -eq 0 ]
  drafts() { aiq invoice list --json --limit 0 | jq -rs 'map([.tenant, .currency, .total] | join(" ")) | sort | join(",")'; }
  [ "$(drafts)" = "acme EUR 1.00,acme USD 1.00,bolt USD 1.00" ]
  use_of acme e5 2026-02-03T04:06:00Z | aiq usage import -
  run "$examples/cost-turn" monthly --month 2026-02
  [ "$status" -eq 0 ]
  [ "$(drafts)" = "acme EUR 1.00,acme USD 2.00,bolt USD 1.00" ]

  # An issued one stays, and that is said.
  aiq invoice issue "$(aiq invoice list --json --tenant bolt | jq -r .invoice_id)"
  run "$examples/cost-turn" monthly --month 2026-02
  [ "$status" -eq 1 ]
  [[ $output == *"is issued and never changes"* ]]
}

@test "each line of the crontab runs as cron runs it" {
  use_of acme e1 "$(date -u -d "$(date -u +%Y-%m-15) -1 month" +%Y-%m-%dT00:00:00Z)" |
    aiq usage import -
  local count=0 line
  while read -r line; do
    run env -i HOME="$HOME" AIQ_DB="$AIQ_DB" AIQ_CONFIG="$AIQ_CONFIG" \
      PATH="$examples:$PATH" sh -c "$line"
    [ "$status" -eq 0 ]
    count=$((count + 1))
  done < <(sed -nE 's/^[0-9*]+ +[0-9*]+ +[0-9*]+ +[0-9*]+ +[0-9*]+ +//p' "$examples/crontab")
  [ "$count" -eq 3 ]
  [ "$(aiq invoice list --json | jq -r .state)" = draft ]
}

@test "a wrong turn is an error of use" {
  for words in "" weekly "hourly --mail x" "nightly --month 2026-01"; do
    # shellcheck disable=SC2086
    run "$examples/cost-turn" $words
    [ "$status" -eq 2 ]
  done
}
