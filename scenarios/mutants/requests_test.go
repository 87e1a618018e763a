package mutants

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/host"
)

// TestChangeRequests: a change is what is sent, all else stays, and requests of another kind pass.
func TestChangeRequests(t *testing.T) {
	const path = "http://server/apis/operator.openshift.io/v1/kubeapiservers/cluster"
	for _, c := range []struct {
		method, url, body string
		change            func(*outgoing)
		want              string
	}{
		{http.MethodPatch, path + "/status?fieldManager=a&force=true&timeout=1s", "{}", func(*outgoing) {}, "PATCH " + path + "/status?fieldManager=a&force=true&timeout=1s {}"},
		{http.MethodPatch, path + "/status?fieldManager=a&force=true", "{}", func(o *outgoing) { o.FieldManager, o.Force, o.Body = "b", false, []byte("[]") }, "PATCH " + path + "/status?fieldManager=b []"},
		{http.MethodPatch, path + "/status?fieldManager=a&force=true", "{}", func(o *outgoing) { o.Verb = "update" }, "PUT " + path + "/status?fieldManager=a {}"},
		{http.MethodGet, path, "", func(o *outgoing) { o.Verb, o.Name = "list", "" }, "GET " + strings.TrimSuffix(path, "/cluster") + " "},
		{http.MethodGet, path + "?watch=true", "", func(o *outgoing) { o.Name = "x" }, "GET " + path + "?watch=true "},
		{http.MethodGet, "http://server/api/v1/nodes", "", func(o *outgoing) { o.Name = "x" }, "GET http://server/api/v1/nodes "},
	} {
		var sent string
		h := host.Host{WrapFunc: func(http.RoundTripper) http.RoundTripper {
			return tripper{trip: func(r *http.Request) (*http.Response, error) {
				var body []byte
				if r.Body != nil {
					body, _ = io.ReadAll(r.Body)
				}
				sent = r.Method + " " + r.URL.String() + " " + string(body)
				return &http.Response{}, nil
			}}
		}}
		changeRequests(&h, c.change)
		var body io.Reader
		if c.body != "" {
			body = strings.NewReader(c.body)
		}
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, body)
		if err == nil {
			_, err = h.Wrap(nil).RoundTrip(r)
		}
		if err != nil || sent != c.want {
			t.Errorf("%s %s: sent %q, %v, expected %q", c.method, c.url, sent, err, c.want)
		}
	}
}
