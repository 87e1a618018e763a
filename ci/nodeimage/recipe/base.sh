#!/usr/bin/env bash
# base.sh ROOTFS PACKAGE…: a Debian root file system with these packages.
#
# KMSHARNESS_DEBIAN_MIRROR  where from; default: the mirror that this machine's own apt uses
set -euo pipefail
rootfs=$1; shift
suite=bookworm

# apt_site is the mirror that this machine's apt has Debian from, if it has one.
apt_site() {
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null | grep -v security | head -n 1
}

# use_apt_proxy gives debootstrap the proxy that apt is configured with.
use_apt_proxy() {
  local proxy=
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "$proxy" ] || export http_proxy=${http_proxy:-$proxy}
}

if ! command -v debootstrap >/dev/null; then
  echo "installing debootstrap"
  DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends debootstrap debian-archive-keyring
fi
mirror=${KMSHARNESS_DEBIAN_MIRROR:-$(apt_site || true)}
use_apt_proxy
include=$(IFS=,; echo "$*")
# In a mount namespace of its own, so that nothing stays mounted below ROOTFS whatever happens.
unshare --mount debootstrap --variant=minbase --include="$include" "$suite" "$rootfs" "${mirror:-http://deb.debian.org/debian}"
rm -rf "$rootfs"/var/cache/apt/archives/*.deb "$rootfs"/var/lib/apt/lists/* "$rootfs"/usr/share/{doc,man,locale}/*
