#!/usr/bin/env bash
# janitor.sh FOLDER SUPERVISOR WORKER: waits until the worker of a gate (ci/gate/stages.sh) has ended or its supervisor is gone, and removes what
# they left: processes that carry FOLDER in their environment, containers and networks of the harness that were not there before, the engine
# if the gate started it, and FOLDER with all temporary files.
set -uo pipefail
cd "$(dirname "$0")/../.."
room=$1 supervisor=$2 worker=$3
grace=${STAGES_GRACE:-20} # seconds that processes have to end by themselves

# lives reports whether a process exists and is not a zombie.
lives() { [[ $(ps -o stat= -p "$1" 2>/dev/null) == [^Z]* ]]; }

# marked lists the processes of the gate that live, without those of a container engine, which ends in its own way.
marked() {
  local dir
  for dir in /proc/[0-9]*; do
    grep -qsxzF "STAGES_ROOM=$room" "$dir/environ" || continue
    case $(cat "$dir/comm" 2>/dev/null) in dockerd | containerd* | docker-proxy | runc*) continue ;; esac
    lives "${dir#/proc/}" && echo "${dir#/proc/}"
  done
}

# end_processes asks all of them to end, and kills those that have not ended within the grace.
end_processes() {
  local pids deadline=$((SECONDS + grace))
  pids=$(marked)
  [ -n "$pids" ] || return 0
  echo "janitor: ending $(wc -w <<<"$pids") processes"
  kill -TERM $pids 2>/dev/null
  while pids=$(marked); [ -n "$pids" ]; do
    ((SECONDS < deadline)) || kill -KILL $pids 2>/dev/null
    sleep 0.5
  done
}

# added lists the names of containers or networks that were not there before. An engine that does not answer has none.
added() {
  local kind=$1; shift
  command -v docker >/dev/null || return 0
  timeout 30 docker "$@" 2>/dev/null | while read -r name; do
    grep -qx "$kind $name" "$room/before" || echo "$name"
  done
}

# remove_clusters removes the nodes of the harness' clusters, and kind's network if nobody else uses it.
remove_clusters() {
  local name
  for name in $(added container ps --all --format '{{.Names}}' | grep '^kmsharness-'); do
    echo "janitor: removing the container $name"
    timeout 60 docker unpause "$name" >/dev/null 2>&1
    timeout 60 docker rm --force --volumes "$name" >/dev/null
  done
  for name in $(added network network ls --format '{{.Name}}' | grep -E '^(kind|kmsharness-.*)$'); do
    [ -n "$(timeout 30 docker ps --all --quiet --filter "network=$name")" ] || timeout 60 docker network rm "$name" >/dev/null
  done
}

# stop_engine stops an engine that was started in the gate.
stop_engine() {
  . ci/engine/lib.sh
  local pid
  if [ "$(our_service)" = "$room" ] || { pid=$(our_daemon) && grep -qsxzF "STAGES_ROOM=$room" "/proc/$pid/environ"; }; then timeout 120 ci/engine/down.sh; fi
}

while lives "$worker" && lives "$supervisor"; do sleep 0.5; done
end_processes
remove_clusters
stop_engine
rm -rf "$room"
