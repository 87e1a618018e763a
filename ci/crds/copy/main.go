// Command copy takes the CRDs that the harness installs from the OpenShift API module that go.mod names, unchanged:
// go generate ./ci/crds (or make crds).
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/openshift/api"

func main() {
	if err := run("."); err != nil {
		fmt.Fprintf(os.Stderr, "copy CRDs: %v\n", err)
		os.Exit(1)
	}
}

// run replaces the *.crd.yaml files in dir.
func run(dir string) error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("locate %s: %w", module, err)
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.crd.yaml"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	for _, source := range Sources() {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(source)))
		if err != nil {
			return fmt.Errorf("read the module's CRD: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(source)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Sources are the CRDs by their path in the module: those of the operators and of the encryption configuration in
// the variants without and with the typed reports, and the ClusterOperator, which has only one.
func Sources() []string {
	out := []string{"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml"}
	for _, name := range []string{
		"0000_10_config-operator_01_apiservers",
		"0000_20_kube-apiserver_01_kubeapiservers",
		"0000_30_openshift-apiserver_01_openshiftapiservers",
		"0000_50_authentication_01_authentications",
	} {
		for _, variant := range []string{"Default", "TechPreviewNoUpgrade"} {
			out = append(out, "payload-manifests/crds/"+name+"-"+variant+".crd.yaml")
		}
	}
	return out
}
