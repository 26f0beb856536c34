#!/usr/bin/env bats
# examples/replay-by-class
# shellcheck disable=SC2154  # world.bash sets examples, and run sets stderr

bats_require_minimum_version 1.5.0

setup_file() {
  load world
  start_world '{"rules":[{"match":{"prompt_contains":"<fail>"},"act":{"status":500},"times":3}]}'
  local i job
  for ((i = 0; i < 3; i++)); do
    job=$(aiq submit --model m-1 --tenant acme --prompt "<fail> $i")
    aiq wait "$job" || true
  done
}
teardown_file() { stop_world; }
setup() { load world; }

open_letters() { aiq dlq list --json | wc -l; }

@test "counts, and replays only with --yes, and only what the filters name" {
  [ "$(open_letters)" -eq 3 ]
  run --separate-stderr "$examples/replay-by-class" server_error
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == "3"$'\t'"m-1"$'\t'* ]]
  [ "$(open_letters)" -eq 3 ]

  run --separate-stderr "$examples/replay-by-class" --yes server_error --tenant nobody
  [ "$status" -eq 0 ]
  [ "$(open_letters)" -eq 3 ]

  run --separate-stderr "$examples/replay-by-class" --yes server_error --tenant acme --note again
  [ "$status" -eq 0 ]
  [ "$(open_letters)" -eq 0 ]
  aiq wait 1 2 3
  [ "$(aiq show --json 1 | jq .generation)" -eq 2 ]
  run --separate-stderr "$examples/replay-by-class" --yes server_error
  [ "$status" -eq 0 ]
  [ "$(aiq list --json --limit 0 | jq -s 'map(.generation) | unique == [2] and length == 3')" = true ]
}

@test "another class has none, and an unknown one is an error" {
  run --separate-stderr "$examples/replay-by-class" --yes total_timeout
  [ "$status" -eq 0 ]
  run "$examples/replay-by-class" servererror
  [ "$status" -eq 2 ]
  [[ $output == *"did you mean 'server_error'?"* ]]
  run "$examples/replay-by-class"
  [ "$status" -eq 2 ]
}
