package version_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/version"
)

// TestKubernetes: the constant is the release of the client that the programs are built with.
func TestKubernetes(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	client := "k8s.io/client-go v0." + strings.TrimPrefix(version.Kubernetes, "1.") + "."
	if !strings.Contains(string(module), client) {
		t.Errorf("go.mod has no %s, expected that of Kubernetes %s", client, version.Kubernetes)
	}
}

// TestEveryProgramHasAVersion: a program without commands asks Asked. The others have the flag from package program.
func TestEveryProgramHasAVersion(t *testing.T) {
	files, err := filepath.Glob("../../cmd/*/main.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if elsewhere := map[string]string{"encryption-operator": "../../operator/command/command.go", "kms-health-reporter": "../../reporter/main.go"}[name]; elsewhere != "" {
			file = elsewhere
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "kmsharness", "kmsharness-tests-ext", "kms-conformance", "fake-kms-plugin", "kms-health-aggregator": // tests of their packages
			continue
		}
		if !strings.Contains(string(source), `version.Asked("`+name+`", `) {
			t.Errorf("%s has no --version", name)
		}
	}
}

func TestAsked(t *testing.T) {
	var out bytes.Buffer
	if !version.Asked("p", []string{"--version"}, &out) || !strings.Contains(out.String(), "p ") || !strings.Contains(out.String(), "Kubernetes "+version.Kubernetes+"\n") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	for _, args := range [][]string{nil, {"--"}, {"--", "--version"}, {"--version", "x"}} {
		if version.Asked("p", args, &out) || out.Len() > 0 {
			t.Errorf("%q: %q", args, out.String())
		}
	}
}
