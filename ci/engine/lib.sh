# What up.sh and down.sh share: where the engine's state is, and how they speak. Sourced, not run.

state=${XDG_STATE_HOME:-$HOME/.local/state}/kmsharness/engine
log=$state/dockerd.log
pidfile=$state/dockerd.pid
service=$state/docker.service # the run of docker.service that up.sh started, and the gate that it did so for
instances=$state/inotify-instances # the limit of before

say() { printf 'engine: %s\n' "$*"; }

# die says why there is no engine, on one line, and what to do next.
die() { printf 'engine: %s\n' "$*" >&2; exit 1; }

# engine_answers asks with a deadline: a socket without a daemon behind it may hang.
engine_answers() { command -v docker >/dev/null && timeout 10 docker version --format '{{.Server.Version}}' 2>/dev/null; }

# our_service prints the gate that up.sh started the present run of docker.service for. A run that somebody else started since is not ours.
our_service() {
  local run room
  { read -r run && read -r room; } 2>/dev/null <"$service" && [ "$(service_run)" = "$run" ] && echo "$room"
}

service_run() { systemctl show docker --property InvocationID --value 2>/dev/null; }

# our_daemon prints the id of a dockerd that up.sh started and that still runs. A pid alone may be somebody else's by now.
our_daemon() {
  local pid
  pid=$(cat "$pidfile" 2>/dev/null) && [[ $(readlink "/proc/$pid/exe" 2>/dev/null) == */dockerd* ]] && echo "$pid"
}
