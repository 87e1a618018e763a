package watch

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owners reads from managedFields which managers own a field of each condition ("condition/TYPE") and of each typed
// report ("report/NODE/KEYID"), sorted. An entry that cannot be read owns nothing.
func Owners(u *unstructured.Unstructured) map[string][]string { return OwnersOf(u.GetManagedFields()) }

func OwnersOf(fields []metav1.ManagedFieldsEntry) map[string][]string {
	return (&OwnerReader{}).Of(fields)
}

// OwnerReader is OwnersOf for one object after another: it remembers what it read, for managers own the same most of the time. The zero
// value is ready; it is for one goroutine.
type OwnerReader struct{ read map[string][]string }

// mostRead bounds its memory: a hundred nodes that come and go.
const mostRead = 256

func (r *OwnerReader) items(fields []byte) []string {
	found, ok := r.read[string(fields)]
	if ok {
		return found
	}
	if r.read == nil || len(r.read) >= mostRead {
		r.read = map[string][]string{}
	}
	found = items(fields)
	r.read[string(fields)] = found
	return found
}

func (r *OwnerReader) Of(fields []metav1.ManagedFieldsEntry) map[string][]string {
	owners := map[string][]string{}
	for _, entry := range fields {
		if entry.FieldsV1 == nil {
			continue
		}
		for _, item := range r.items(entry.FieldsV1.GetRawBytes()) {
			if !slices.Contains(owners[item], entry.Manager) {
				owners[item] = append(owners[item], entry.Manager)
			}
		}
	}
	for _, managers := range owners {
		slices.Sort(managers)
	}
	if len(owners) == 0 {
		return nil
	}
	return owners
}

// items are the list items that one fieldsV1 document names.
func items(fields []byte) []string {
	status := child(fields, "f:status")
	var found []string
	for _, key := range listKeys(child(status, "f:conditions")) {
		if key["type"] != "" {
			found = append(found, "condition/"+key["type"])
		}
	}
	for _, parent := range []json.RawMessage{status, child(status, "f:oauthAPIServer")} {
		for _, key := range listKeys(child(child(parent, "f:encryptionStatus"), "f:healthReports")) {
			found = append(found, "report/"+key["nodeName"]+"/"+key["keyID"])
		}
	}
	return found
}

func child(node json.RawMessage, name string) json.RawMessage {
	var children map[string]json.RawMessage
	if json.Unmarshal(node, &children) != nil {
		return nil
	}
	return children[name]
}

// listKeys are the k:{…} members of an associative list.
func listKeys(list json.RawMessage) []map[string]string {
	var members map[string]json.RawMessage
	if json.Unmarshal(list, &members) != nil {
		return nil
	}
	var keys []map[string]string
	for member := range members {
		text, ok := strings.CutPrefix(member, "k:")
		var key map[string]string
		if ok && json.Unmarshal([]byte(text), &key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
