package operator_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/operator/core"
)

// TestRotation: a KEK is rotated behind real plugins, which notice at different times. Everything is encrypted anew, and no key is made.
// An API server asks its plugin once a minute, and nobody can make it ask more often, so the test takes minutes.
func TestRotation(t *testing.T) {
	if os.Getenv("KMSHARNESS_ROTATION") == "" {
		t.Skip("it takes minutes: set KMSHARNESS_ROTATION=1")
	}
	c := newCluster(t)
	c.operate(func(o *core.Options) { o.Settle = 75 * time.Second })
	c.write()
	c.want(vault)
	c.arrives("k8s:enc:kms:v2:kms-1:", 1)
	kek, err := c.bench.kms.Rotate(t.Context(), "openshift", 0)
	c.must(err)
	t.Logf("rotated to %s", kek.ID)
	c.await("the rotation is noticed", func() string {
		if status, reason, message := c.condition(core.ConditionProgressing); reason != core.StageReencrypting {
			return fmt.Sprintf("%s %s %s", status, reason, message)
		}
		return ""
	})
	c.await("everything is under the new KEK", func() string { return c.under(kek.ID) })
	c.arrives("k8s:enc:kms:v2:kms-1:", 1)
	if problem := c.under(kek.ID); problem != "" {
		t.Error(problem)
	}
}

// under says which object is not encrypted under a kekID: it stands with the object in etcd.
func (c *cluster) under(kek string) string {
	transport := &http.Transport{DisableKeepAlives: true}
	for i := range objects {
		name := fmt.Sprintf("data-%02d", i)
		raw, err := live.ReadEtcdGateway(c.Context(), transport, "http://"+c.cp.Etcd().Addr(), "/registry/secrets/default/"+name)
		if err != nil || !strings.Contains(string(raw), kek) {
			return fmt.Sprintf("%s does not name %s (%v)", name, kek, err)
		}
	}
	return ""
}
