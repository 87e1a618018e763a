// Package watch observes the operator CR and its ClusterOperator through every API server concurrently, and records
// each new state in the history.
//
// It has the conversion of an object to a history.Object, the merging of several watches into one sequence that never
// goes back, and the watches themselves. It does not judge the states.
package watch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// Convert is the observed part of an operator CR or ClusterOperator. resource is "plural.group".
func Convert(resource string, u *unstructured.Unstructured) (*history.Object, error) {
	o := &history.Object{Resource: resource, Name: u.GetName(), ResourceVersion: u.GetResourceVersion()}
	if resource == contract.HealthResource+"."+contract.HealthGroup {
		return o, convertHealth(o, u)
	}
	var status record.Status
	raw, err := json.Marshal(u.Object["status"])
	if err == nil {
		err = json.Unmarshal(raw, &status)
	}
	if err != nil {
		return nil, fmt.Errorf("status of %s/%s at resourceVersion %s: %w", resource, u.GetName(), u.GetResourceVersion(), err)
	}
	for i := range status.Conditions {
		o.Conditions = append(o.Conditions, &status.Conditions[i])
	}
	for _, t := range status.HealthReports() {
		o.HealthReports = append(o.HealthReports, &t)
	}
	o.Owners = Owners(u)
	return o, nil
}

// convertHealth reads an EncryptionHealth.
func convertHealth(o *history.Object, u *unstructured.Unstructured) error {
	o.Generation, o.Health = u.GetGeneration(), &contract.HealthStatus{}
	status, _, err := unstructured.NestedMap(u.Object, "status")
	if err == nil && status != nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(status, o.Health)
	}
	if err != nil {
		return fmt.Errorf("status of %s/%s at resourceVersion %s: %w", o.Resource, o.Name, o.ResourceVersion, err)
	}
	return nil
}

// version is a resourceVersion as a number: API servers of one etcd draw them from one counter, which is what makes
// states seen through different API servers comparable.
func version(text string) (uint64, error) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number: %w", text, err)
	}
	return v, nil
}

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
