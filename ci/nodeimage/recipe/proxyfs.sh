#!/usr/bin/env bash
# proxyfs.sh ROOTFS TARGET: what kube-proxy's image needs beside kube-proxy: iptables, nft and conntrack of the node's own root
# file system, with every library that they or one of the iptables matches load.
set -euo pipefail
rootfs=$1 target=$2

in_root() { unshare --mount chroot "$rootfs" "$@"; }

skeleton() {
  mkdir -p "$target"/{etc,run,tmp,usr/bin,usr/sbin,usr/lib,usr/lib64}
  ln -sfn usr/bin "$target/bin"
  ln -sfn usr/sbin "$target/sbin"
  ln -sfn usr/lib "$target/lib"
  ln -sfn usr/lib64 "$target/lib64"
}

programs=(/usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /usr/sbin/nft /usr/sbin/conntrack /usr/bin/kmod)

# put copies a file to the place where it really is, and makes the link that leads there if it is known by another name.
put() {
  local real
  real=$(in_root readlink -f "$1")
  mkdir -p "$target${real%/*}" "$target${1%/*}"
  cp -a "$rootfs$real" "$target$real"
  [ -e "$target$1" ] || [ -L "$target$1" ] || ln -s "$real" "$target$1"
}

# commands are one program under many names.
commands() {
  local family form
  for family in iptables ip6tables; do
    for form in '' -save -restore; do
      ln -sf xtables-nft-multi "$target/usr/sbin/$family$form"
      ln -sf xtables-nft-multi "$target/usr/sbin/$family-nft$form"
      ln -sf xtables-legacy-multi "$target/usr/sbin/$family-legacy$form"
    done
  done
  ln -sf ../bin/kmod "$target/usr/sbin/modprobe"
}

# libraries of the programs and of all matches: without libm, for one, "Couldn't load match statistic".
libraries() {
  local file
  for file in "$@"; do in_root ldd "$file"; done | grep -oE '/[^ ]+' | sort -u
}

skeleton
matches=$(cd "$rootfs" && ls -d usr/lib/*/xtables)
mkdir -p "$target/${matches%/*}"
cp -a "$rootfs/$matches" "$target/$matches"
for file in "${programs[@]}"; do put "$file"; done
commands
for library in $(libraries "${programs[@]}" $(cd "$rootfs" && printf '/%s ' "$matches"/*.so)); do put "$library"; done
