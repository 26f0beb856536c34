#!/usr/bin/env bats
# examples/parallel-submit
# shellcheck disable=SC2154  # world.bash sets examples, and run sets stderr

bats_require_minimum_version 1.5.0

setup_file() {
  load world
  start_world
}
teardown_file() { stop_world; }
setup() { load world; }

@test "every line becomes one job, also when repeated, with quotes and line breaks" {
  local file=$BATS_TEST_TMPDIR/lines.jsonl prompt i
  prompt=$'it\'s "one", two\\\n$(three) \t* '
  jq -nc --arg p "$prompt" '{prompt: $p, model: "m-2", tenant: "acme", system: "be brief"}' >"$file"
  for ((i = 0; i < 30; i++)); do jq -nc --arg p "line $i" '{prompt: $p}' >>"$file"; done
  run --separate-stderr "$examples/parallel-submit" -j 8 "$file" --label run=1
  [ "$status" -eq 0 ]
  [ "$(sort -u <<<"$output" | wc -l)" -eq 31 ]
  local first=$output odd
  odd=$(aiq list --json --limit 0 --model m-2)
  [ "$(jq -r '.tenant + " " + .labels.run' <<<"$odd")" = "acme 1" ]
  [ "$(prompt_of "$(jq -r .job_id <<<"$odd")"; echo .)" = "$prompt"$'\n.' ]
  run --separate-stderr "$examples/parallel-submit" - --label run=1 <"$file"
  [ "$status" -eq 0 ]
  [ "$(sort <<<"$output")" = "$(sort <<<"$first")" ]
}

@test "a line that is refused is told, and the others go in" {
  local file=$BATS_TEST_TMPDIR/lines.jsonl
  printf '%s\n' '{"prompt":"good one"}' '{"prompt":"bad","tenant":"not a name"}' \
    '{"prompt":"good two"}' >"$file"
  run --separate-stderr "$examples/parallel-submit" "$file"
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 2 ]
  [[ $stderr == *"is not a tenant name"* && $stderr == *"not all lines were queued"* ]]
}

@test "what is no prompt is an error" {
  run "$examples/parallel-submit" <<<'{"text":"x"}'
  [ "$status" -eq 1 ]
  [[ $output == *"a line has no prompt"* ]]
  run "$examples/parallel-submit" -j many
  [ "$status" -eq 2 ]
}
