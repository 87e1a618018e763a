package live

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// An aggregator that removes its rollups before the answer to the request came is no false alarm: KMS goes with the request, and comes with
// its answer.
func TestExpectedWhileATypeIsWritten(t *testing.T) {
	log := history.NewLog(nil)
	e := (&apiServer{run: &run{}, APIServer: cluster.APIServer{Nodes: &cluster.Nodes{}}, sink: log, encryption: encryption.KMS}).withParts()
	began := time.Now().Add(-time.Minute)
	for _, kind := range []encryption.Type{encryption.AESCBC, encryption.KMS} {
		e.encrypting.recordType(kind, began)
	}
	var got []string
	for _, event := range log.Events() {
		when := "answered"
		if event.At.Equal(began) {
			when = "began"
		}
		got = append(got, when+map[bool]string{true: " active", false: " inactive"}[event.Expected.KMSActive])
	}
	if all := strings.Join(got, ", "); all != "began inactive, answered inactive, answered active" {
		t.Error(all)
	}
}
