#!/usr/bin/env bash
# base.sh ROOTFS PACKAGE…: a Debian root file system with these packages.
#
# KMSHARNESS_DEBIAN_MIRROR  where from
set -euo pipefail
mirror=${KMSHARNESS_DEBIAN_MIRROR:?expected the URL of a Debian mirror}
rootfs=$1; shift
suite=bookworm

# use_apt_proxy gives debootstrap the proxy that apt is configured with.
use_apt_proxy() {
  local proxy=
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "$proxy" ] || export http_proxy=${http_proxy:-$proxy}
}

if ! command -v debootstrap >/dev/null; then
  echo "installing debootstrap"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends debootstrap debian-archive-keyring
fi
use_apt_proxy
include=$(IFS=,; echo "$*")
# In a mount namespace of its own, so that nothing stays mounted below ROOTFS whatever happens.
unshare --mount debootstrap --variant=minbase --include="$include" "$suite" "$rootfs" "$mirror"
rm -rf "$rootfs"/var/cache/apt/archives/*.deb "$rootfs"/var/lib/apt/lists/* "$rootfs"/usr/share/{doc,man,locale}/*
