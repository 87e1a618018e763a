package command

import (
	"strings"
	"testing"
)

func TestParsePreflight(t *testing.T) {
	const all = "--kms-sockets unix:///a/kms-1.sock,unix:///a/kms-2.sock --kms-call-timeout 5s --config-hash AAAAAAA= --pod-name p --pod-namespace n --kubeconfig k"
	o, err := parsePreflight(strings.Fields(all))
	if err != nil || len(o.sockets) != 2 || o.hash != "AAAAAAA=" || o.timeout != preflightTimeout || o.poll != preflightPoll {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range []string{"", all + " more", all + " --timeout 0s", strings.Replace(all, "--pod-name p", "", 1)} {
		if _, err := parsePreflight(strings.Fields(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
