package core

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
)

// Observed is what stands on the operator's CR.
type Observed struct {
	// Conditions are all conditions of the CR, reports among them.
	Conditions []Condition
	// Reports by node, both wire forms merged.
	Reports map[string]Report
}

// Report is what one node's reporter said, in whichever wire form.
type Report struct {
	// Typed are the items of the typed form as they stand; nothing may change them.
	Typed []contract.TypedReport
	// Entries that could be read, the write key first.
	Entries []contract.Entry
	// Problems say why (a part of) the report could not be read, safe to print; empty for a well-formed report.
	Problems []string
	// Oversized is true for a report that no reporter may write: it leaves too little room on the CR for others.
	Oversized bool
	// Fingerprint changes when the stored report does, readable or not.
	Fingerprint [sha256.Size]byte
}

// ReadConditions reads status.conditions of any object. Items without a type are skipped.
func ReadConditions(object map[string]any) []Condition { return new(Reader).readConditions(object) }

func typedItem(item map[string]any) contract.TypedReport {
	return contract.TypedReport{
		NodeName: text(item, "nodeName"), KeyID: text(item, "keyID"), Status: text(item, "status"),
		LastCheckedTime: text(item, "lastCheckedTime"), RemoteKeyID: text(item, "remoteKeyID"), Detail: text(item, "detail"),
	}
}

// list is the objects of the list at path; what is not a list of objects is as if it were absent.
func list(object map[string]any, path ...string) []map[string]any {
	value, _, err := unstructured.NestedFieldNoCopy(object, path...)
	items, _ := value.([]any)
	if err != nil || items == nil {
		return nil
	}
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		m, _ := item.(map[string]any) // nil for another shape: keeps the index, reads as empty
		out = append(out, m)
	}
	return out
}

func text(item map[string]any, field string) string {
	s, _ := item[field].(string)
	return s
}

func problem(err error) string { return contract.SafeText(fmt.Sprint(err), 200) }
