# shellcheck shell=bash
# A simulator and a daemon for the tests of one file. AIQ_BIN_DIR names the programs' folder.

examples=$(cd "$BATS_TEST_DIRNAME/../../examples" && pwd)
export examples

# until_true COMMAND...: asks again until it succeeds, for 20 seconds.
until_true() {
  local deadline=$((SECONDS + 20))
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.02
  done
}

# start_world [RULES]: bats waits for whoever holds its descriptor 3, so children get none.
start_world() {
  export PATH=$AIQ_BIN_DIR:$PATH
  export AIQ_DB=$BATS_FILE_TMPDIR/aiq.db AIQ_CONFIG=$BATS_FILE_TMPDIR/aiq.toml
  local log=$BATS_FILE_TMPDIR/sim.log url
  echo "${1:-"{\"rules\":[]}"}" >"$BATS_FILE_TMPDIR/rules.json"
  aiq-sim --rules "$BATS_FILE_TMPDIR/rules.json" >"$log" 2>&1 3>&- &
  echo $! >"$BATS_FILE_TMPDIR/sim.pid"
  until_true grep -q '^listening on ' "$log"
  url=$(sed -n 's/^listening on //p' "$log")
  cat >"$AIQ_CONFIG" <<CONFIG
[retry]
max_attempts = 1
[vendors.sim]
api = "openai"
base_url = "$url/v1"
auth = "none"
CONFIG
  aiqd >"$BATS_FILE_TMPDIR/aiqd.log" 2>&1 3>&- &
  echo $! >"$BATS_FILE_TMPDIR/aiqd.pid"
  until_true aiqd_runs
}

aiqd_runs() { aiq stats --json | jq -e .daemon.running >/dev/null; }

stop_world() {
  local name
  for name in aiqd sim; do
    [[ -f $BATS_FILE_TMPDIR/$name.pid ]] || continue
    kill "$(<"$BATS_FILE_TMPDIR/$name.pid")"
    wait "$(<"$BATS_FILE_TMPDIR/$name.pid")" 2>/dev/null || true
  done
}

# The prompt of a job, as it went to the vendor.
prompt_of() {
  sqlite3 -readonly "$AIQ_DB" "SELECT body FROM requests WHERE job_id = $1" |
    jq -r '.messages[-1].content'
}
