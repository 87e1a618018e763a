#!/usr/bin/env bash
# Lists what runs of the harness can leave on a machine, one per line: containers, volumes and networks of the engine, processes,
# run directories, contexts in the user's kubeconfig. With a command, runs it and shows what it left (diff's form, exit code 1):
#
#   ci/leftovers.sh bin/kmsharness run scenarios/catalogue/plugin-hangs.yaml --backend kind
set -uo pipefail

list() {
  if docker version >/dev/null 2>&1; then
    docker ps --all --format 'container {{.Names}}'
    docker volume ls --format 'volume {{.Name}}'
    docker network ls --format 'network {{.Name}}'
  fi
  # Not the number of a process: it says nothing between two lists.
  ps -eo comm | grep -E '^(kmsharness|fake-kms|kms-health|kube-api|etcd)' | sort | uniq -c | sed 's/^/process /'
  find /tmp/kmsh-*/ -maxdepth 1 -name 'r*' -printf 'run directory %p\n' 2>/dev/null
  sed -n 's/^- context:.*//; s/^  name: /context /p' "${KUBECONFIG:-$HOME/.kube/config}" 2>/dev/null
}

[ $# -gt 0 ] || { list; exit; }
before=$(list | sort)
"$@"
printf '\n%s ended with %d\n' "$1" $?
diff <(printf '%s\n' "$before") <(list | sort) && echo 'nothing was left'
