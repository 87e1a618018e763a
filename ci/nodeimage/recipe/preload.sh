#!/usr/bin/env bash
# preload.sh ROOTFS ARCHIVE: imports container images into the containerd of a node that does not run. Its containerd runs here
# for a moment, in namespaces of its own: it dies with this script and leaves no mount.
set -euo pipefail
rootfs=$1 archive=$2

inside='
set -euo pipefail
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
containerd --log-level error >/tmp/containerd.log 2>&1 &
for _ in $(seq 150); do ctr version >/dev/null 2>&1 && break; sleep 0.2; done
ctr version >/dev/null || { cat /tmp/containerd.log >&2; exit 1; }
ctr -n k8s.io images import --all-platforms --no-unpack - || { tail -n 5 /tmp/containerd.log >&2; exit 1; }
ctr -n k8s.io images ls -q | grep -v sha256
kill %1
wait %1 || true'

unshare --mount --pid --fork --kill-child chroot "$rootfs" bash -c "$inside" <"$archive"
