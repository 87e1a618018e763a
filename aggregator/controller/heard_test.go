package controller

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

type answered int

func (a answered) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a)}, nil
}

// TestHeard: what needs etcd and was answered counts, and nothing else does.
func TestHeard(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		code         int
		heard        bool
	}{
		"a write":                     {http.MethodPatch, "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status", 200, true},
		"a conflict":                  {http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", 409, true},
		"a lease that is read":        {http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", 200, true},
		"a list, perhaps of a cache":  {http.MethodGet, "/api/v1/nodes", 200, false},
		"a write that failed":         {http.MethodPatch, "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status", 504, false},
		"a lease that cannot be read": {http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", 500, false},
	} {
		clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
		h := &heard{clock: clock}
		if _, err := h.wrap(answered(c.code)).RoundTrip(&http.Request{Method: c.method, URL: &url.URL{Path: c.path}}); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(time.Unix(1002, 0))
		if got := h.ago() == 2*time.Second; got != c.heard {
			t.Errorf("%s: last heard %v ago, expected that it counts: %v", name, h.ago(), c.heard)
		}
	}
}
