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

@test "counts, and replays only with --yes, and only once" {
  [ "$(aiq dlq list --json | wc -l)" -eq 3 ]
  run --separate-stderr "$examples/replay-by-class" server_error
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  [[ $stderr == "3"$'\t'"m-1"* ]]
  [ "$(aiq list --json --limit 0 | wc -l)" -eq 3 ]

  run --separate-stderr "$examples/replay-by-class" --yes server_error --tenant acme
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 3 ]
  local first=$output jobs
  mapfile -t jobs < <(cut -f 2 <<<"$output")
  aiq wait "${jobs[@]}"
  [[ $(prompt_of "${jobs[0]}") == "<fail> "* ]]
  [ "$(aiq show --json "${jobs[0]}" | jq -r '.tenant + " " + .vendor')" = "acme sim" ]
  [ "$("$examples/replay-by-class" --yes server_error 2>/dev/null)" = "$first" ]
}

@test "another class has none, and an unknown one is an error" {
  run --separate-stderr "$examples/replay-by-class" --yes total_timeout
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  run "$examples/replay-by-class" servererror
  [ "$status" -eq 2 ]
  [[ $output == *"did you mean 'server_error'?"* ]]
  run "$examples/replay-by-class"
  [ "$status" -eq 2 ]
}
