#!/usr/bin/env bash
# programs.sh ROOTFS PROGRAMS VERSION PAUSE: puts Kubernetes' programs into a node, and says which images containerd has.
# PROGRAMS is the folder of what was built, VERSION that of Kubernetes, PAUSE the name of the pause image.
set -euo pipefail
rootfs=$1 programs=$2 version=$3 pause=$4

install -m 0755 "$programs"/{kubelet,kubeadm,kubectl} "$rootfs/usr/bin/"
install -m 0755 "$programs/etcdctl" "$rootfs/usr/local/bin/"
printf '%s' "$version" >"$rootfs/kind/version"

sed -i "s#^  sandbox_image = .*#  sandbox_image = \"$pause\"#" "$rootfs/etc/containerd/config.toml"
grep -q "\"$pause\"" "$rootfs/etc/containerd/config.toml" || { echo "containerd's configuration names no sandbox image" >&2; exit 1; }

# kubelet refuses cgroup v1 by default; on a host with v2 the flag changes nothing.
printf 'KUBELET_EXTRA_ARGS=--runtime-cgroups=/system.slice/containerd.service --fail-cgroupv1=false\n' >"$rootfs/etc/default/kubelet"
