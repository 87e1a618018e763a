#!/usr/bin/env bash
# Certifies the fake plugin of this project with every capability, and writes its report here: make build && conformance/reports/fake-kms-plugin.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$here/../.." && pwd)/bin

# As a hook of the suite: fake-kms-plugin.sh hook MODE FOLDER
if [ "${1:-}" = hook ]; then
  export KMSHARNESS_REMOTE_KMS="unix://$3/remote.sock"
  kms() { "$bin/fake-kms-plugin" kms "$@" > /dev/null; }
  current() { "$bin/fake-kms-plugin" kms keys | grep -o '"version": *[0-9]*' | tail -n 1 | grep -o '[0-9]*$'; }
  case $2 in
    fail) kms rule '*/*' --cut-off refuse ;;
    hang) kms rule '*/*' --cut-off hang ;;
    refuse) kms rule '*/*' --deny ;;
    slow) kms rule '*/*' --latency 4s ;;
    lose-key) kms state default "$(current)" disabled ;;
    rotate) kms rotate default ;;
    count) "$bin/fake-kms-plugin" kms log-ins ;;
    restore)
      kms unrule '*/*' 2> /dev/null || true
      kms state default "$(current)" enabled
      ;;
    *) echo "unknown mode $2" >&2; exit 2 ;;
  esac
  exit
fi

work=$(mktemp -d)
trap 'kill "$kms" 2> /dev/null || true; rm -rf "$work"' EXIT
"$bin/fake-kms-plugin" remote --listen "unix://$work/remote.sock" --state "$work/keys.json" 2> "$work/remote.log" &
kms=$!
hook="$here/fake-kms-plugin.sh hook"
cat > "$work/fake-kms-plugin.yaml" << END
apiVersion: kmsharness.io/v1alpha1
kind: SystemUnderTest
plugin:
  name: fake-kms-plugin
  organization: kmsharness
  command: $bin/fake-kms-plugin serve --listen {endpoint} --remote unix://$work/remote.sock
  break: $hook {mode} $work
  slow: $hook slow $work
  restore: $hook restore $work
  rotate: $hook rotate $work
  count: $hook count $work
END
"$bin/kmsharness" conform plugin "$@" --system "$work/fake-kms-plugin.yaml" --out "$work/out" && code=0 || code=$?
sed "s#$bin/##g; s#$here/##g; s#$work#WORK#g" "$work/out/report.yaml" > "$here/fake-kms-plugin.yaml"
exit "$code"
