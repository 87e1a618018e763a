package controller

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// A CR that one report has filled, so that etcd takes no write of anybody, recovers once an aggregator runs, in either form.
func TestFullCRRecovers(t *testing.T) {
	for form, status := range map[string]func() map[string]any{"condition": hugeCondition, "typed": hugeItems} {
		t.Run(form, func(t *testing.T) {
			e := start(t, "kubeapiserver")
			e.addNode("cp-1")
			e.addNode("cp-2")
			admin, good := &fakeReporter{e: e, client: e.admin}, e.reporter("cp-1", healthyEntry("1", "kek-a"))
			must(t, admin.apply("stolen", status()))
			for least, most := 0, 1<<20; least < most-10; { // what is left of etcd's 1.5 MiB
				size := (least + most) / 2
				filler := conditionNamed("FillerAvailable")
				filler["conditions"].([]any)[0].(map[string]any)["message"] = strings.Repeat("x", size)
				if admin.apply("filler", filler) == nil {
					least = size
				} else {
					most = size
				}
			}
			if err := good.write(); err == nil || !strings.Contains(err.Error(), "too large") {
				t.Fatalf("a report of another node: %v, expected that it is too large", err)
			}
			r := e.run(func(*Config) {})
			defer r.stop()
			good.keepWriting()
			eventually(t, 20*time.Second, "true", func() string {
				reports := e.observed().Reports
				_, gone := reports["cp-2"]
				return strconv.FormatBool(!gone && len(reports["cp-1"].Entries) == 1)
			})
		})
	}
}

func hugeCondition() map[string]any {
	out := conditionNamed(contract.ConditionType("cp-2"))
	out["conditions"].([]any)[0].(map[string]any)["message"] = strings.Repeat("x", 1_000_000)
	return out
}

func hugeItems() map[string]any {
	var list []any
	item := map[string]any{"nodeName": "cp-2", "status": "Error", "remoteKeyID": strings.Repeat("\U0001F600", 1024), "detail": strings.Repeat("\U0001F600", 1024),
		"lastCheckedTime": "2026-01-01T00:00:00Z"}
	for i := range 120 {
		further := maps.Clone(item)
		further["keyID"] = strconv.Itoa(i)
		list = append(list, further)
	}
	return map[string]any{"encryptionStatus": map[string]any{"healthReports": list}}
}
