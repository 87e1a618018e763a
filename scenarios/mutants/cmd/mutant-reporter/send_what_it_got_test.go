package main

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
)

// TestSendWhatItGot: a healthy plugin's item is as it should be; that of a plugin that failed has an empty remoteKeyID.
func TestSendWhatItGot(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	cr, err := body(contract.Report{Node: "cp-1", Entries: []contract.Entry{
		{KeyID: "2", KEKID: "kek", Status: contract.StatusHealthy, LastChecked: at},
		{KeyID: "1", Status: contract.StatusError, LastChecked: at, Detail: "connection refused"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	items, _, err := unstructured.NestedSlice(cr.Object, "status", "encryptionStatus", "healthReports")
	if err != nil || len(items) != 2 {
		t.Fatalf("items %v, %v", items, err)
	}
	for i, want := range []string{"kek", ""} {
		item, ok := items[i].(map[string]any)
		if !ok || item["remoteKeyID"] != want {
			t.Errorf("item %d is %v, want remoteKeyID %q", i, items[i], want)
		}
	}
}
