package operand

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	return nested(path, items)
}

// EntryElsewhere is the status by which an apply overwrites the entry of a node, in the typed form of reports or the other, as somebody with an editor would.
func EntryElsewhere(path []string, typed bool, node, keyID string, at time.Time) map[string]any {
	if !typed {
		return map[string]any{"conditions": []any{map[string]any{"type": contract.ConditionType(node), "status": "True", "reason": contract.ReporterConditionReason,
			"message": "edited by hand", "lastTransitionTime": contract.FormatTime(at)}}}
	}
	return nested(path, []any{map[string]any{"nodeName": node, "keyID": keyID, "status": "Unhealthy", "remoteKeyID": "kek-elsewhere", "lastCheckedTime": contract.FormatTime(at)}})
}

// EntriesOf is the status by which an apply writes as many typed entries of a node as its reporter may have, with size bytes of text.
func EntriesOf(path []string, node string, size int, at time.Time) map[string]any {
	text := strings.Repeat("\U0001F600", min(max(size/contract.MaxEntries/2/4, 1), contract.MaxDetailChars))
	items := make([]any, contract.MaxEntries)
	for i := range items {
		items[i] = map[string]any{"nodeName": node, "keyID": strconv.Itoa(i + 1), "status": "Error", "remoteKeyID": text, "detail": text, "lastCheckedTime": contract.FormatTime(at)}
	}
	return nested(path, items)
}

// nested is a status that has nothing but the list at path.
func nested(path []string, items []any) map[string]any {
	var status any = items
	for _, field := range slices.Backward(path[1:]) {
		status = map[string]any{field: status}
	}
	out, _ := status.(map[string]any)
	return out
}
