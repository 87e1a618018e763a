package watch

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owners reads from managedFields which managers own a field of each condition ("condition/TYPE") and of each typed
// report ("report/NODE/KEYID"), sorted. An entry that cannot be read owns nothing.
func Owners(u *unstructured.Unstructured) map[string][]string {
	owners := map[string][]string{}
	for _, entry := range u.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		for _, item := range items(entry.FieldsV1.GetRawBytes()) {
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
