package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"
)

// TestIsSmall: the program has no client of Kubernetes, no kind and no control plane in memory. A build of it is a matter of a minute.
func TestIsSmall(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	large := regexp.MustCompile(`^(k8s\.io/(client-go|api|apiserver|apiextensions-apiserver)|sigs\.k8s\.io/(kind|controller-runtime|e2e-framework)|cel\.dev|.*/harness/(cluster|backend|engine|scenario|check))(/|$)`)
	others := 0
	for name := range strings.FieldsSeq(string(out)) {
		if large.MatchString(name) {
			t.Errorf("it imports %s", name)
		}
		if strings.Contains(name, ".") && !strings.HasPrefix(name, "vendor/") {
			others++
		}
	}
	if others > 192 {
		t.Errorf("it has %d packages that are not Go's, expected at most 192", others)
	}
}

// TestGoInstall: go install of a version takes a module without files that some system could not have.
func TestGoInstall(t *testing.T) {
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(string(out)) {
		if err := module.CheckFilePath(strings.TrimSpace(file)); err != nil {
			t.Error(err)
		}
	}
}
