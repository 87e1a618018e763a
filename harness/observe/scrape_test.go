package observe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/history"
)

const scraped = `# TYPE apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds gauge
apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{apiserver_id_hash="sha256:a",key_id_hash="sha256:2",provider_name="kms-2"} 1.79e+09
apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{apiserver_id_hash="sha256:a",key_id_hash="sha256:1",provider_name="kms-1"} 1.79e+09
apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{apiserver_id_hash="sha256:a",key_id_hash="sha256:2",provider_name="kms-1"} 1.79e+09
apiserver_envelope_encryption_key_id_hash_total{apiserver_id_hash="sha256:a",key_id_hash="sha256:3",provider_name="kms-1",transformation_type="x"} 1
`

// TestScrape: each scrape is over a connection of its own, and who may not scrape goes without.
func TestScrape(t *testing.T) {
	var mu sync.Mutex
	var from []string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from = append(from, r.RemoteAddr)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, scraped)
	}))
	defer server.Close()
	log := history.NewLog(nil)
	var said []string
	r, err := newRecorder(Options{REST: &rest.Config{Host: server.URL}, Operator: core.Operators()[0], Progress: func(line string) { said = append(said, line) }}, log)
	must(t, err)
	for range 2 {
		got, err := r.keks(t.Context())
		if want := (&history.KEKs{ID: "sha256:a", Hashes: []string{"sha256:1", "sha256:2"}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
	if len(slices.Compact(from)) != 2 {
		t.Errorf("connections from %v", from)
	}
	status = http.StatusForbidden
	r.scrape(t.Context())
	if len(log.Events()) > 0 || len(said) != 1 || !strings.Contains(said[0], "forbidden: /metrics") {
		t.Errorf("%d events, %q", len(log.Events()), said)
	}
}
