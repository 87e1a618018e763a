package operated

import (
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Elsewhere is the field manager of entries that no reporter of the cluster writes.
const Elsewhere = "elsewhere"

// EntriesElsewhere is the status by which an apply puts count entries of nodes that do not exist into the typed list of an operator's CR, in
// place of those from before. An empty status removes them: the schema wants one item at least.
//
// path leads from the object to the list, status first.
func EntriesElsewhere(path []string, count int, at time.Time) map[string]any {
	if count == 0 {
		return map[string]any{}
	}
	items := make([]any, count)
	for i := range items {
		items[i] = map[string]any{"nodeName": fmt.Sprintf("elsewhere-%d", i+1), "keyID": "1", "status": "Healthy", "remoteKeyID": "kek-elsewhere",
			"lastCheckedTime": contract.FormatTime(at)}
	}
	var status any = items
	for _, field := range slices.Backward(path[1:]) {
		status = map[string]any{field: status}
	}
	out, _ := status.(map[string]any)
	return out
}
