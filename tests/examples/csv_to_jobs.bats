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

# prompt_sent BATCH ID
prompt_sent() {
  prompt_of "$(sqlite3 -readonly "$AIQ_DB" "SELECT s.job_id FROM batch_lines l
    JOIN submissions s USING (submission_id)
    WHERE l.batch_id = ${1#b} AND l.custom_id = '$2'")"
}

@test "commas, quotes and line breaks arrive as they are" {
  run --separate-stderr "$examples/csv-to-jobs" --model m-1 "$csv" --tenant acme --label from=csv
  [ "$status" -eq 0 ]
  local batch=$output
  [[ $batch =~ ^b[0-9]+$ ]]
  aiq batch wait "$batch"
  [ "$(aiq batch results "$batch" | jq -rs 'map(.custom_id) | join("|")')" = "a1|row-2|b 3" ]
  [ "$(prompt_sent "$batch" a1)" = 'Say "hi", please'$'\n''now' ]
  # shellcheck disable=SC2016
  [ "$(prompt_sent "$batch" row-2)" = 'it is $HOME `x` '"'"'\n' ]
  [ "$(prompt_sent "$batch" "b 3")" = 'x,y' ]
  [ "$(aiq list --json --batch "$batch" | jq -rs 'map(.tenant + .model + .labels.from) | unique[]')" = "acmem-1csv" ]
}

@test "the same rows again are the same batch, another model is another" {
  local first
  first=$("$examples/csv-to-jobs" --model m-3 "$csv")
  [ "$("$examples/csv-to-jobs" --model m-3 "$csv")" = "$first" ]
  [ "$(MODEL=m-4 "$examples/csv-to-jobs" "$csv")" != "$first" ]
  [ "$(aiq list --json --limit 0 --model m-3 | wc -l)" -eq 3 ]
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
