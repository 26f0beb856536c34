#!/usr/bin/env bats
# examples/results-to-csv
# shellcheck disable=SC2154  # world.bash sets examples, and run sets stderr

bats_require_minimum_version 1.5.0

setup_file() {
  load world
  local body
  body=$(jq -nc '{id: "c", object: "chat.completion", model: "m-1",
    choices: [{index: 0, finish_reason: "stop",
      message: {role: "assistant", content: "a \"b\",\nc"}}],
    usage: {prompt_tokens: 7, completion_tokens: 5, total_tokens: 12}}')
  start_world "$(jq -nc --argjson body "$body" \
    '{rules: [{match: {prompt_contains: "<text>"}, act: {status: 200, body: $body}}]}')"
}
teardown_file() { stop_world; }
setup() { load world; }

@test "rows are those of the completed jobs, oldest first, quoted as CSV wants" {
  local one two
  one=$(aiq submit --model m-1 --tenant acme --prompt "<text>")
  two=$(aiq submit --model m-1 --tenant acme --prompt "plain")
  aiq wait "$one" "$two"
  aiq submit --model m-1 --tenant acme --prompt "later" --delay 1h
  run --separate-stderr "$examples/results-to-csv" --tenant acme
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = '"job_id","tenant","model","finished_at","input","output","text"' ]
  [[ ${lines[1]} == "\"$one\",\"acme\",\"m-1\",\"20"*",7,5,\"a \"\"b\"\"," ]]
  [ "${lines[2]}" = 'c"' ]
  [[ ${lines[3]} == "\"$two\",\"acme\","* ]]
  [ "$(grep -c '^"[0-9]' <<<"$output")" -eq 2 ]
}

@test "no job is a header alone, and a wrong filter an error" {
  [ "$("$examples/results-to-csv" --tenant nobody 2>/dev/null | wc -l)" -eq 1 ]
  run "$examples/results-to-csv" --tennant x
  [ "$status" -eq 2 ]
}
