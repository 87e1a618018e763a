#!/usr/bin/env bash
# Stops the dockerd that up.sh started, by itself or with systemd. An engine that was there before is never touched.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/engine/lib.sh

# stop_timeout is dockerd's own limit for its containers (15 s) and some more.
stop_timeout=30

if our_service >/dev/null; then
  say "stopping docker.service"
  systemctl stop docker.socket docker.service || die "systemctl stop docker failed: journalctl -u docker says why"
  rm -f "$service"
  say "stopped after $SECONDS s"
  exit 0
fi
if ! pid=$(our_daemon); then
  say "nothing to stop: no dockerd of ours runs"
  exit 0
fi
say "stopping dockerd ($pid)"
kill -TERM "$pid"
deadline=$((SECONDS + stop_timeout))
while our_daemon >/dev/null; do
  ((SECONDS <= deadline)) || die "dockerd ($pid) did not stop within $stop_timeout s; see $log"
  sleep 0.2
done
rm -f "$pidfile"
if [ -s "$instances" ]; then
  cat "$instances" >/proc/sys/fs/inotify/max_user_instances || say "fs.inotify.max_user_instances was $(cat "$instances") before, and stays higher"
  rm -f "$instances"
fi
say "stopped after $SECONDS s"
