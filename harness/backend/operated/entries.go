package operated

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Elsewhere is the field manager of entries that no reporter of the cluster writes.
const Elsewhere = "elsewhere"

// EntriesElsewhere is the status by which an apply puts count entries of nodes that do not exist into the typed list of an operator's CR, in
// place of those from before. An empty status removes them: the schema wants one item at least.
func EntriesElsewhere(operator publish.Operator, count int, at time.Time) map[string]any {
	if count == 0 {
		return map[string]any{}
	}
	items := make([]any, count)
	for i := range items {
		items[i] = map[string]any{"nodeName": fmt.Sprintf("elsewhere-%d", i+1), "keyID": "1", "status": "Healthy", "remoteKeyID": "kek-elsewhere",
			"lastCheckedTime": contract.FormatTime(at)}
	}
	status := map[string]any{"encryptionStatus": map[string]any{"healthReports": items}}
	if operator == publish.Authentication {
		return map[string]any{"oauthAPIServer": status}
	}
	return status
}
