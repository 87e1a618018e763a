// Package watch observes the operator CR and its ClusterOperator through every API server concurrently, and records
// each new state in the history.
//
// It has the conversion of an object to a history.Object, the merging of several watches into one sequence that never
// goes back, and the watches themselves. It does not judge the states.
package watch

import (
	"encoding/json"
	"fmt"
	"strconv"

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
	o.Conditions, o.HealthReports = status.Conditions, status.HealthReports()
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
