#!/usr/bin/env bats
# examples/csv-to-jobs
# shellcheck disable=SC2154  # world.bash sets examples, and run sets stderr

bats_require_minimum_version 1.5.0

setup_file() {
  load world
  start_world
}
teardown_file() { stop_world; }
setup() {
  load world
  csv=$BATS_TEST_TMPDIR/prompts.csv
  printf '\xef\xbb\xbfid,prompt,system\r\na1,"Say ""hi"", please\nnow",be brief\n' >"$csv"
  # shellcheck disable=SC2016  # nothing in a prompt is for a shell
  printf ',it is $HOME `x` '"'"'\\n,\n\nb 3,"x,y",' >>"$csv"
}

@test "commas, quotes and line breaks arrive as they are" {
  run --separate-stderr "$examples/csv-to-jobs" --model m-1 "$csv" --tenant acme
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 3 ]
  local id job
  declare -A jobs
  while IFS=$'\t' read -r id job; do jobs[$id]=$job; done <<<"$output"
  aiq wait "${jobs[@]}"
  [ "$(prompt_of "${jobs[a1]}")" = 'Say "hi", please'$'\n''now' ]
  # shellcheck disable=SC2016
  [ "$(prompt_of "${jobs[row-2]}")" = 'it is $HOME `x` '"'"'\n' ]
  [ "$(prompt_of "${jobs[b 3]}")" = 'x,y' ]
  [ "$(aiq show --json "${jobs[a1]}" | jq -r '.tenant + " " + .model + " " + .labels.csv')" = "acme m-1 a1" ]
}

@test "the same file again makes no second job" {
  local first
  first=$("$examples/csv-to-jobs" "$csv")
  [ "$("$examples/csv-to-jobs" "$csv")" = "$first" ]
}

@test "--jsonl prints lines of a batch file and queues nothing" {
  local before
  before=$(aiq list --json --limit 0 | wc -l)
  run --separate-stderr "$examples/csv-to-jobs" --jsonl "$csv"
  [ "$status" -eq 0 ]
  [ "$(jq -rs 'map(.custom_id) | join("|")' <<<"$output")" = "a1|row-2|b 3" ]
  [ "$(jq -rs '.[0].body.messages[0].content' <<<"$output")" = "be brief" ]
  [ "$(aiq list --json --limit 0 | wc -l)" -eq "$before" ]
}

@test "a quote that is not closed, or no prompt, is an error" {
  printf 'prompt\n"open' >"$csv"
  run "$examples/csv-to-jobs" "$csv"
  [ "$status" -ne 0 ]
  [[ $output == *"a quote is not closed"* ]]
  printf 'id,text\n1,x\n' >"$csv"
  run "$examples/csv-to-jobs" "$csv"
  [ "$status" -ne 0 ]
  [[ $output == *'no column "prompt"'* ]]
  run "$examples/csv-to-jobs" "$BATS_TEST_TMPDIR/missing.csv"
  [ "$status" -eq 2 ]
}
