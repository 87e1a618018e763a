#!/bin/sh
# copy.sh [DIR]: copies the CRDs that the harness installs from the OpenShift API module that go.mod names, unchanged: those of the
# operators and of the encryption configuration in the variants without and with the typed reports, and the ClusterOperator, which has
# only one.
set -eu
dir=${1:-.}
module=$(go list -m -f '{{.Dir}}' github.com/openshift/api)
rm -f "$dir"/*.crd.yaml
copy() { cat "$module/$1" >"$dir/$(basename "$1")"; }
copy config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml
for name in 0000_10_config-operator_01_apiservers 0000_20_kube-apiserver_01_kubeapiservers \
  0000_30_openshift-apiserver_01_openshiftapiservers 0000_50_authentication_01_authentications; do
  for variant in Default TechPreviewNoUpgrade; do
    copy "payload-manifests/crds/$name-$variant.crd.yaml"
  done
done
