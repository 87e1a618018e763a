#!/usr/bin/env bash
# import.sh ROOTFS NODE BALANCER LABEL: gives the engine the root file system under two names: NODE, which boots, and BALANCER,
# which runs what kind asks for (bash -c "… envoy …"). They share their only layer.
set -euo pipefail
rootfs=$1 node=$2 balancer=$3 label=$4

tar -C "$rootfs" --numeric-owner --xattrs --xattrs-include='*' -c . |
  docker import --change "LABEL $label" --change 'ENV container=docker' - "$balancer"

# systemd stops on this signal; on SIGTERM it would start again. The old builder is in every engine, the new one is not.
DOCKER_BUILDKIT=0 docker build --tag "$node" - <<DOCKERFILE
FROM $balancer
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]
DOCKERFILE

# What had these names before is of no use to anybody but a cluster that still runs.
docker image prune --force --filter "label=${label%%=*}"
