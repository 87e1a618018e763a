#!/bin/bash
# Pod networking in place of kindnet: this node's pods are 10.244.N.0/24, where N is the last octet of the node's address, and
# there is a route to every address of the subnet that may be a node's. Run it again when the node's address has changed.
set -euo pipefail

# last_peer is the highest octet that a node may have; docker gives addresses from 2 upwards.
last_peer=60

# After a reconnect the device has another name, so it is that of the default route.
device=$(ip -4 route show default | awk '{ for (i = 1; i < NF; i++) if ($i == "dev") { print $(i + 1); exit } }')
address=$(ip -4 -o addr show dev "$device" | awk '{ split($4, a, "/"); print a[1]; exit }')
network=${address%.*} self=${address##*.}

write_config() {
  local file=/etc/cni/net.d/10-kmsharness.conflist
  mkdir -p "${file%/*}"
  cat >"$file.tmp" <<CONFIG
{"cniVersion": "0.3.1", "name": "kmsharness", "plugins": [
  {"type": "ptp", "ipMasq": false, "mtu": 1500, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
    "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "10.244.$self.0/24"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
CONFIG
  mv "$file.tmp" "$file"
}

route_to_peers() {
  local peer
  for peer in $(seq 2 $last_peer); do
    [ "$peer" = "$self" ] || echo "route replace 10.244.$peer.0/24 via $network.$peer dev $device"
  done | ip -batch -
  echo 1 >/proc/sys/net/ipv4/ip_forward
}

# masquerade what leaves both pods and nodes.
masquerade() {
  local rule=(POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -m addrtype ! --dst-type LOCAL -j MASQUERADE)
  iptables -w -t nat -C "${rule[@]}" 2>/dev/null || iptables -w -t nat -A "${rule[@]}"
}

write_config
route_to_peers
masquerade
