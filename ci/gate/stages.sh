# Stages of a gate: each runs within its limit, all of them run, one summary tells, and nothing is left. Sourced by .ci/run and ci/gate/nightly.sh.
#
#   supervised "$@"                 first: runs the script again under supervision, and ends with its exit code
#   stage NAME SECONDS COMMAND...   runs a command within a limit and notes what became of it
#   beside NAME COMMAND...          begins a stage that takes what processors the next ones leave idle: it must not care for the time
#   joined NAME SECONDS             waits for it, shows its output and notes what became of it
#   skipped NAME REASON             notes that a stage did not run
#   summary                         prints the table, and fails if a stage failed
#
#   STAGES      names of the stages to run, separated by spaces; empty: all
#   TIME_LIMIT  seconds for all stages together; the script names its default as default_time
#   STATE       a folder that keeps the result of each stage of this commit, so that another run with other STAGES completes the table; optional

stages_failed=0 stages_running='' stages_table=() stages_names=()
declare -A stages_began stages_beside
stages_grace=${STAGES_GRACE:-30} # seconds between the request to end and the end

# supervised starts three processes: this one shows the output and passes signals on, a worker in a session of its own runs the script,
# and a janitor (ci/gate/janitor.sh) in another one cleans up when the worker has ended or this process is gone, however it went.
supervised() {
  [ -z "${STAGES_ROOM:-}" ] || return 0
  local room worker janitor log code
  # Temporary files of all stages are in one folder, which the janitor removes. Its name is always the same for a checkout: Go keeps the
  # results of tests whose environment is the same.
  room=${TMPDIR:-/tmp}/kg-$(cksum <<<"$PWD/$0" | cut -d ' ' -f 1)
  mkdir "$room" || { echo "it runs in this checkout already, or was killed with its janitor: if none runs, remove the folder $room"; exit 1; }
  # Package managers use it as users of their own.
  mkdir "$room/tmp" && chmod 755 "$room" && chmod 1777 "$room/tmp" || exit
  ci/leftovers.sh >"$room/before"
  : >"$room/log"
  STAGES_ROOM=$room TMPDIR=$room/tmp setsid bash "$0" "$@" >>"$room/log" 2>&1 </dev/null &
  worker=$!
  setsid bash ci/gate/janitor.sh "$room" $$ $worker >>"$room/log" 2>&1 </dev/null &
  janitor=$!
  tail -n +1 -f --pid=$janitor "$room/log" &
  log=$!
  trap 'kill -TERM $worker 2>/dev/null' INT TERM
  until wait $worker; code=$?; ! kill -0 $worker 2>/dev/null; do :; done
  until wait $janitor; ! kill -0 $janitor 2>/dev/null; do :; done
  wait $log
  exit $code
}

stages_left() { echo $((${TIME_LIMIT:-$default_time} - SECONDS - stages_grace)); }

# wanted reports whether a stage is to run.
wanted() { [ -z "${STAGES:-}" ] || [[ " $STAGES " == *" $1 "* ]]; }

stages_note() {
  local line
  line=$(printf '%-13s %-9s %6ss  %s' "$1" "$2" "$3" "${4:-}")
  stages_table+=("$line")
  [ -z "${STATE:-}" ] || printf '%s\n' "$line" >"$STATE/$1"
}

# bounded SECONDS COMMAND... ends a command that takes longer than its limit, or than all stages together may take. timeout signals the
# command's whole process group, and kills it after a grace.
bounded() {
  local limit=$1 code; shift
  (($(stages_left) > limit)) || limit=$(stages_left)
  ((limit > 0)) || { echo "no time is left of ${TIME_LIMIT:-$default_time} s"; return 1; }
  timeout --kill-after="$stages_grace" "$limit" "$@" &
  stages_running=$!
  wait $stages_running; code=$?
  stages_running=
  [ $code != 124 ] && [ $code != 137 ] || echo "ended after its limit of $limit s"
  return $code
}
trap 'stages_failed=1 TIME_LIMIT=1; [ -z "$stages_running" ] || kill -TERM "$stages_running"' TERM

stage() {
  local name=$1 start=${stages_began[$1]:-$SECONDS} result=ok last; shift
  stages_names+=("$name")
  wanted "$name" || return 0
  printf '\n=== %s\n' "$name"
  bounded "$@" || { result=FAILED stages_failed=1; }
  # The last line of a run of scenarios is its count.
  last=$(grep -aE '^(e2e|simulate|killed|fuzz): |^killed ' "$STAGES_ROOM/log" | tail -n 1)
  [ "$last" != "${stages_last:-}" ] || last=
  stages_last=${last:-${stages_last:-}}
  stages_note "$name" "$result" $((SECONDS - start)) "$last"
  [ "$result" = ok ]
}

beside() {
  local name=$1 room=$STAGES_ROOM/beside-$1; shift
  wanted "$name" && (($(stages_left) > 0)) || return 0
  : >"$room" # before it begins, because joined may come first
  # Linux shares processors between sessions before it looks at the nice values within one.
  setsid bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; nice -n 19 "$@"; echo $? >"$0-code"' "$room" "$@" >"$room" 2>&1 </dev/null &
  stages_began[$name]=$SECONDS stages_beside[$name]=$!
}

# It is no child of the command that waits. One that exceeds its limit ends with the worker.
joined() {
  stage "$1" "$2" bash -c 'tail -n +1 -f --pid="$0" "$1"; exit "$(cat "$1-code")"' "${stages_beside[$1]:-0}" "$STAGES_ROOM/beside-$1"
}

skipped() { stages_names+=("$1"); wanted "$1" && { printf '\n=== %s\n%s\n' "$1" "$2"; stages_note "$1" SKIPPED 0 "$2"; }; return 0; }

summary() {
  printf '\n=== summary of %s\n' "$(git rev-parse --short HEAD 2>/dev/null)"
  printf '%s\n' "${stages_table[@]}" "$(printf '%-13s %-9s %6ss' total '' $SECONDS)"
  return $stages_failed
}
