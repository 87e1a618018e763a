#!/usr/bin/env bash
# Makes sure that a container engine answers: does nothing if one does, else installs Debian's docker.io and starts dockerd.
#
# KMSHARNESS_ENGINE_NICE  start dockerd, and so every container, with this niceness
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/engine/lib.sh

# start_timeout is generous: dockerd answers after 1 to 3 s.
start_timeout=60

# install_engine takes Debian's own packages. Since trixie the command is a package of its own.
install_engine() {
  command -v apt-get >/dev/null || die "dockerd is not installed and this is not Debian: install a container engine and run again"
  say "installing docker.io with apt-get (log: $state/apt.log)"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -q && apt-get install -qy --no-install-recommends docker.io iptables ca-certificates; } >"$state/apt.log" 2>&1 ||
    { tail -n 10 "$state/apt.log" >&2; die "apt-get could not install docker.io, see above and $state/apt.log"; }
  command -v docker >/dev/null || apt-get install -qy --no-install-recommends docker-cli >>"$state/apt.log" 2>&1 ||
    die "apt-get could not install the docker command, see $state/apt.log"
}

# lacks_sys_resource is true if no process of this host can ever have CAP_SYS_RESOURCE (bit 24), which runc wants for
# privileged containers.
lacks_sys_resource() {
  local set
  set=$(awk '$1 == "CapBnd:" { print $2 }' /proc/self/status)
  (((16#$set >> 24 & 1) == 0))
}

# runtime_arguments puts runc-front before runc where runc alone would refuse. An ordinary host gets nothing.
runtime_arguments() {
  runtime=()
  lacks_sys_resource || return 0
  command -v go >/dev/null || die "this host lacks CAP_SYS_RESOURCE, and the runtime front that helps is built with Go: install Go"
  say "this host's bounding set lacks CAP_SYS_RESOURCE: runc gets a front that takes it out of specs (ci/engine/runc-front)"
  CGO_ENABLED=0 go build -trimpath -o "$state/runc-front" ./ci/engine/runc-front
  runtime=(--add-runtime "runc-front=$state/runc-front" --default-runtime runc-front)
}

# share_fairly: with cgroup v1 all containers together get as much processor time as one process beside them, and clusters starve
# next to a compiler. Where the folder cannot be made (cgroup v2) there is nothing to do.
share_fairly() {
  [ -e /sys/fs/cgroup/cpu/cpu.shares ] || return 0
  mkdir -p /sys/fs/cgroup/cpu/docker && echo 16384 >/sys/fs/cgroup/cpu/docker/cpu.shares || say "containers share one process's part of the processors"
}

# allow_nodes: every node of a kind cluster has 20 inotify instances of root's, and the kernel's default of 128 is soon used up: a node
# then ends at its start. down.sh puts the old limit back.
allow_nodes() {
  local file=/proc/sys/fs/inotify/max_user_instances
  (($(cat "$file") < 512)) || return 0
  cat "$file" >"$instances"
  { echo 512 >"$file"; } 2>/dev/null || say "fs.inotify.max_user_instances cannot be raised: one kind cluster of three nodes, not two"
}

# start_with_systemd leaves the daemon to the machine's own service manager.
start_with_systemd() {
  lacks_sys_resource && say "this host lacks CAP_SYS_RESOURCE: privileged containers may fail; see docs/troubleshooting.md"
  systemctl start docker || die "systemctl start docker failed: journalctl -u docker says why"
  printf '%s\n' "$(service_run)" "${STAGES_ROOM:--}" >"$service"
  say "started docker.service; stop it with: make engine-down"
}

# start_daemon starts dockerd in a session of its own, so that it outlives this shell and its terminal.
start_daemon() {
  local nice=()
  [ -z "${KMSHARNESS_ENGINE_NICE:-}" ] || nice=(nice -n "$KMSHARNESS_ENGINE_NICE")
  share_fairly
  allow_nodes
  say "starting dockerd${KMSHARNESS_ENGINE_NICE:+ with niceness $KMSHARNESS_ENGINE_NICE} (log: $log)"
  setsid "${nice[@]}" dockerd --pidfile "$pidfile" "${runtime[@]}" >"$log" 2>&1 </dev/null &
  wait_for_daemon $!
}

# wait_for_daemon ends as soon as the daemon answers or is gone. One that never answers is not left behind.
wait_for_daemon() {
  local begin=$SECONDS version
  until version=$(engine_answers); do
    kill -0 "$1" 2>/dev/null || give_up "dockerd ended instead of coming up"
    ((SECONDS - begin < start_timeout)) || { kill "$1"; give_up "dockerd did not answer within $start_timeout s and was stopped"; }
    sleep 0.2
  done
  say "dockerd $version answers after $((SECONDS - begin)) s; stop it with: make engine-down"
}

give_up() {
  tail -n 15 "$log" >&2
  die "$1; the last lines of $log are above"
}

if version=$(engine_answers); then
  say "a container engine answers already (server $version): nothing to do"
  exit 0
fi
[ "$(id -u)" = 0 ] || die "no container engine answers, and starting one needs root: start yours, or run: sudo make engine"
mkdir -p "$state"
command -v dockerd >/dev/null || install_engine
if systemctl show --property Version >/dev/null 2>&1; then
  start_with_systemd
else
  runtime_arguments
  start_daemon
fi
