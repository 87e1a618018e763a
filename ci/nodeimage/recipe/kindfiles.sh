#!/usr/bin/env bash
# kindfiles.sh ROOTFS KIND: makes a node of a Debian root file system: kind's own files, taken from its Go module, and what
# kind's Dockerfile does after them. Where it differs, the comment says why.
set -euo pipefail
rootfs=$1 kind=$2
here=$(cd "$(dirname "$0")" && pwd)
from=$kind/images/base/files

in_root() { unshare --mount chroot "$rootfs" "$@"; }

# overlay copies a tree over the root file system: programs with mode 0755, all else with 0644. It never follows a link in the
# root file system, which could lead to this machine's own files.
overlay() {
  local file mode
  while read -r file; do
    mode=0644
    [[ $file != */bin/* ]] || mode=0755
    install -D -m "$mode" "$1/$file" "$rootfs/$file"
  done < <(cd "$1" && find . -type f)
}

copy_files() {
  overlay "$from"
  mkdir -p "$rootfs"/etc/kubernetes/manifests "$rootfs"/opt/cni/bin "$rootfs"/etc/cni/net.d
}

# debian_paths: kind builds its runtime below /usr/local and its CNI plugins below /opt; Debian's are elsewhere.
debian_paths() {
  local program
  for program in containerd ctr containerd-shim-runc-v2; do
    ln -sf "/usr/bin/$program" "$rootfs/usr/local/bin/$program"
  done
  cp -a "$rootfs"/usr/lib/cni/. "$rootfs"/opt/cni/bin/
}

# disable_units is kind's list: what would touch the host, or wait for what a container does not have.
disable_units() {
  in_root bash -c '
    cd /lib/systemd/system
    rm -f sysinit.target.wants/systemd-tmpfiles-setup.service multi-user.target.wants/* local-fs.target.wants/*
    rm -f sockets.target.wants/*udev* sockets.target.wants/*initctl* basic.target.wants/* /etc/systemd/system/*.wants/*
    systemctl set-default multi-user.target
    systemctl mask systemd-binfmt.service
    systemctl enable kubelet.service containerd.service undo-mount-hacks.service'
  echo 'ReadKMsg=no' >>"$rootfs/etc/systemd/journald.conf"
}

# without_sys_resource: the machines that need this image may lack the capability to raise limits and to lower OOM scores.
# Where it is there, nothing is lost but a preference of the OOM killer.
without_sys_resource() {
  sed -i -e '/^OOMScoreAdjust=/d' -e '/^Limit/d' "$rootfs/etc/systemd/system/containerd.service"
  sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$rootfs/etc/containerd/config.toml"
}

# container_spec is what kind's Dockerfile generates.
container_spec() {
  in_root ctr oci spec |
    in_root jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
      >"$rootfs/etc/containerd/cri-base.json"
}

# own_files replace what can only be pulled: crictl, kindnet, the storage provisioner, the load balancer.
own_files() {
  overlay "$here/files"
  in_root systemctl enable kmsharness-cni.service
  in_root systemctl mask haproxy.service
}

copy_files
debian_paths
disable_units
without_sys_resource
container_spec
own_files
