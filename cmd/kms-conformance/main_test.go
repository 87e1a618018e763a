package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
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
