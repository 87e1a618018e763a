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
	var owners map[string][]string
	for _, entry := range list(child(u.Object, "metadata")["managedFields"]) {
		manager, _ := entry["manager"].(string)
		for _, item := range items(child(entry, "fieldsV1")) {
			if owners == nil {
				owners = map[string][]string{}
			}
			if !slices.Contains(owners[item], manager) {
				owners[item] = append(owners[item], manager)
			}
		}
	}
	for _, managers := range owners {
		slices.Sort(managers)
	}
	return owners
}

// items are the list items that the fields of one manager name.
func items(fields map[string]any) []string {
	status := child(fields, "f:status")
	var found []string
	for _, key := range listKeys(child(status, "f:conditions")) {
		if key["type"] != "" {
			found = append(found, "condition/"+key["type"])
		}
	}
	for _, parent := range []map[string]any{status, child(status, "f:oauthAPIServer")} {
		for _, key := range listKeys(child(child(parent, "f:encryptionStatus"), "f:healthReports")) {
			found = append(found, "report/"+key["nodeName"]+"/"+key["keyID"])
		}
	}
	return found
}

// list is the objects of a list; nothing is copied, for states are many.
func list(v any) []map[string]any {
	items, _ := v.([]any)
	var out []map[string]any
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

func child(node map[string]any, name string) map[string]any {
	found, _ := node[name].(map[string]any)
	return found
}

// listKeys are the k:{…} members of an associative list.
func listKeys(members map[string]any) []map[string]string {
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
