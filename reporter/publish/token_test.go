package publish

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestTokenIsReadAgainAfterA401: a new token is used by the next write, however recently the old one was read.
func TestTokenIsReadAgainAfterA401(t *testing.T) {
	s := newServer(t)
	valid := "one"
	s.set(nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+valid {
			refusal(http.StatusUnauthorized, "Unauthorized")(w, r)
			return
		}
		answer(http.StatusOK, `{}`)(w, r)
	})
	file := filepath.Join(t.TempDir(), "token")
	put := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	// As rest.InClusterConfig has it: the text of the first token, too.
	p, err := New(&rest.Config{Host: s.URL, BearerToken: "one", BearerTokenFile: file}, nil, KubeAPIServer, HealthReports, "cp-1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	write := func(want string) {
		t.Helper()
		err := p.Apply(t.Context(), writeWithin(ample))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	write("")
	s.mu.Lock()
	valid = "two"
	s.mu.Unlock()
	write("Unauthorized") // the file has the old one
	put("two")
	write("")
}
