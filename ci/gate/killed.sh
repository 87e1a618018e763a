#!/usr/bin/env bash
# Ends the gate in each of its stages, by TERM and by KILL, and shows that nothing is left on the machine. Needs what the stages need.
#
#   ci/gate/killed.sh [STAGE...]
set -uo pipefail
cd "$(dirname "$0")/../.."
patience=120 # seconds that the janitor of a gate has: a cluster and an engine are to be removed

failed=0
# at reports whether a stage has come far enough to leave something behind.
at() {
  case $1 in
    kind) docker ps --format '{{.Names}}' 2>/dev/null | grep -q ^kmsharness- ;;
    local) pgrep -x kube-apiserver >/dev/null ;;
    *) grep -q "^=== $1" "$log" && ((++waited > 6)) ;;
  esac
}

# ended STAGE SIGNAL runs the gate, ends it in the stage, and waits until its janitor is done.
ended() {
  local gate waited=0 deadline=$((SECONDS + 900)) room
  log=$(mktemp)
  env -u STAGES_ROOM STAGES="$1" KIND=always .ci/run >"$log" 2>&1 &
  gate=$!
  until at "$1"; do
    kill -0 $gate 2>/dev/null && ((SECONDS < deadline)) || { echo "the gate ended before it was at $1:"; tail -n 5 "$log"; break; }
    sleep 0.5
  done
  kill -"$2" $gate
  wait $gate 2>/dev/null
  deadline=$((SECONDS + patience))
  while pgrep -f "janitor.sh .* $gate " >/dev/null && ((SECONDS < deadline)); do sleep 0.5; done
  rm -f "$log"
}
[ $# -gt 0 ] || set -- lint test long-tests alerts local kind
for stage; do
  for signal in TERM KILL; do
    before=$(ci/leftovers.sh | sort -u)
    ended "$stage" "$signal"
    if left=$(diff <(printf '%s\n' "$before") <(ci/leftovers.sh | sort -u)); then
      echo "$stage ended by $signal: nothing was left"
    else
      printf '%s ended by %s left:\n%s\n' "$stage" "$signal" "$left"; failed=1
    fi
  done
done
exit $failed
