#!/usr/bin/env bash
# Lists what runs of the harness can leave on a machine, one per line: containers, volumes and networks of the engine, processes, mounts,
# temporary files and run directories, contexts in the user's kubeconfig. With a command, runs it and shows what it left (diff's form, exit
# code 1 if anything, else the command's own):
#
#   ci/leftovers.sh bin/kmsharness run scenarios/catalogue/plugin-hangs.yaml --backend kind
set -uo pipefail

list() {
  if timeout 20 docker version >/dev/null 2>&1; then
    timeout 30 docker ps --all --format 'container {{.Names}}'
    timeout 30 docker volume ls --format 'volume {{.Name}}'
    timeout 30 docker network ls --format 'network {{.Name}}'
  fi
  # Not the number of a process: it says nothing between two lists. One that has ended and that init has not noticed yet is gone.
  ps -eo stat=,comm= | awk '$1 !~ /^Z/ { print $2 }' | grep -E '^(kmsharness|fake-kms|kms-health|kube-api|etcd|dockerd|chrom)' | sort | uniq -c | sed 's/^ */process /'
  awk '{ print "mount " $2 }' /proc/mounts
  find "${TMPDIR:-/tmp}" /tmp/kmsh-*/ -maxdepth 1 -mindepth 1 ! -name lock ! -name 'turn-*' -printf 'file %p\n' 2>/dev/null
  sed -n 's/^- context:.*//; s/^  name: /context /p' "${KUBECONFIG:-$HOME/.kube/config}" 2>/dev/null
}

[ $# -gt 0 ] || { list; exit; }
before=$(list | sort -u)
"$@"
code=$?
printf '\n%s ended with %d\n' "$1" $code
diff <(printf '%s\n' "$before") <(list | sort -u) || exit 1
echo 'nothing was left'
exit $code
