package manifests

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/contract"
)

// administrator is the user of the installation itself.
var administrator rest.ImpersonationConfig

// typed is a status with reports of a node.
func (in *installed) typed(node string, count int, remote string) map[string]any {
	var list []any
	for i := range count {
		list = append(list, map[string]any{"nodeName": node, "keyID": strconv.Itoa(i + 1), "status": "Healthy", "remoteKeyID": remote, "lastCheckedTime": "2026-01-01T00:00:00Z"})
	}
	status := map[string]any{}
	if err := unstructured.SetNestedSlice(status, list, in.operator.TypedPath[1:]...); err != nil {
		in.t.Fatal(err)
	}
	return status
}

func (in *installed) cr() *unstructured.Unstructured {
	o, err := in.admin.Resource(in.resource()).Get(in.t.Context(), "cluster", metav1.GetOptions{})
	if err != nil {
		in.t.Fatal(err)
	}
	return o
}

func (in *installed) must(what string, err error) {
	in.t.Helper()
	if err != nil {
		in.t.Fatalf("%s: %v", what, err)
	}
}

// begin leaves the CR with what an operator and the reporter of cp-2 write.
func (in *installed) begin() {
	in.t.Helper()
	in.must("empty the status", in.patch(administrator, "administrator", types.MergePatchType, map[string]any{"status": nil}))
	status := conditionOf("cp-2", "True", "AsExpected", "")
	status["conditions"].([]any)[0].(map[string]any)["type"] = "Available"
	status["readyReplicas"] = 3
	in.must("the operator", in.applyStatus(administrator, "operator", status))
	in.must("another reporter", in.applyStatus(certificate("cp-2"), contract.FieldManager("cp-2"), conditionOf("cp-2", "True", "AsExpected", "")))
}

// ownershipTaken is what a reporter should not be able to do to managedFields, and is; empty under a policy that bounds it.
func (in *installed) ownershipTaken() (out []string) {
	thief, own := certificate("cp-1"), conditionOf("cp-1", "True", "AsExpected", "")
	repeated := func(status map[string]any) func() error {
		return func() error {
			for i := range contract.MaxFieldManagers {
				in.must(fmt.Sprint("manager ", i), in.applyStatus(thief, fmt.Sprint("m", i), status))
			}
			return in.applyStatus(thief, "one-more", status)
		}
	}
	for _, c := range []struct {
		name string
		try  func() error
	}{
		{"one more manager of a condition", repeated(own)},
		{"one more manager of a typed report", repeated(in.typed("cp-1", 2, "k"))},
		{"the condition of another node, unchanged", func() error {
			both := conditionOf("cp-2", "True", "AsExpected", "")
			both["conditions"] = append(both["conditions"].([]any), own["conditions"].([]any)...)
			return in.applyStatus(thief, "stolen", both)
		}},
		{"the condition of another node in place of its own", func() error {
			in.must("its own", in.applyStatus(thief, "stolen", own))
			return in.applyStatus(thief, "stolen", conditionOf("cp-2", "True", "AsExpected", ""))
		}},
		{"the typed report of another node, unchanged", func() error {
			in.must("another reporter", in.applyStatus(certificate("cp-2"), contract.FieldManager("cp-2"), in.typed("cp-2", 1, "k")))
			return in.applyStatus(thief, "stolen", in.typed("cp-2", 1, "k"))
		}},
		{"another field of the status, unchanged", func() error {
			return in.applyStatus(thief, "stolen", map[string]any{"readyReplicas": 3, "conditions": own["conditions"]})
		}},
		{"the status and nothing in it", func() error { return in.applyStatus(thief, "stolen", map[string]any{}) }},
		{"managedFields as such", func() error {
			before := len(in.cr().GetManagedFields())
			record := map[string]any{"manager": "forged", "operation": "Apply", "apiVersion": "operator.openshift.io/v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:status": map[string]any{}}}
			err := in.patch(thief, "stolen", types.MergePatchType, map[string]any{"metadata": map[string]any{"managedFields": []any{record}}})
			if err == nil && len(in.cr().GetManagedFields()) == before { // ignored by the status subresource
				return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
			}
			return err
		}},
	} {
		in.begin()
		switch err := c.try(); {
		case err == nil:
			out = append(out, c.name)
		case !apierrors.IsForbidden(err):
			in.t.Errorf("%s: %v", c.name, err)
		}
	}
	return out
}

// A reporter owns its own entry, under a few names at most: each has a record in managedFields, of which etcd refuses too many to every writer of the CR.
func TestTheFieldManagersOfAReporterAreBounded(t *testing.T) {
	for _, operator := range []string{"kubeapiserver", "authentication"} {
		t.Run(operator, func(t *testing.T) {
			in := install(t, operator)
			in.settle(certificate("cp-1"), "cp-2", true)
			in.correctReporters()
			in.fill()
			if got := in.ownershipTaken(); len(got) > 0 {
				t.Fatalf("accepted %q", got)
			}
			in.eachWrong(in.ownershipTaken, map[string][2]string{
				"it counts no managers":         {"size(variables.ownAfter) <= ", "size(variables.ownAfter) <= 1000 + "},
				"it does not see typed reports": {"k.endsWith(variables.reportKeyEnd)", "k.endsWith('}')"},
				"a record of nothing":           {"(r.record in variables.ownAfter || ", "(true || "},
				"an entry has two owners":       {"&& r.parts.all(p, ", "&& r.parts.all(p, true || "},
			})
		})
	}
}

// fill stores as much as the credential of cp-1 can, in characters that JSON escapes: others can write nevertheless.
func (in *installed) fill() {
	in.begin()
	status := in.typed("cp-1", contract.MaxEntries, strings.Repeat("<", 1024))
	list, _, _ := unstructured.NestedSlice(status, in.operator.TypedPath[1:]...)
	for i := range list {
		list[i].(map[string]any)["keyID"] = fmt.Sprintf("%s%03d", strings.Repeat("<", 509), i)
	}
	in.must("long keys", unstructured.SetNestedSlice(status, list, in.operator.TypedPath[1:]...))
	status["conditions"] = conditionOf("cp-1", "True", "AsExpected", strings.Repeat("<", contract.MaxMessageBytes))["conditions"]
	for i := range contract.MaxFieldManagers {
		in.must("fill", in.applyStatus(certificate("cp-1"), fmt.Sprint(strings.Repeat("m", 120), i), status))
	}
	in.must("another reporter", in.applyStatus(certificate("cp-2"), contract.FieldManager("cp-2"), in.typed("cp-2", contract.MaxEntries, strings.Repeat("<", 1024))))
}

// correctReporters write as they may, under any name, by any kind of patch, whatever others own already.
func (in *installed) correctReporters() {
	reporter, own := certificate("cp-1"), func(message string) map[string]any { return conditionOf("cp-1", "True", "AsExpected", message) }
	merged := func(message string) map[string]any { // the whole list, as a merge patch has to
		status := own(message)
		list, _, _ := unstructured.NestedSlice(in.cr().Object, "status", "conditions")
		for _, item := range list {
			if c, _ := item.(map[string]any); c["type"] != contract.ConditionType("cp-1") {
				status["conditions"] = append(status["conditions"].([]any), item)
			}
		}
		return map[string]any{"status": status}
	}
	for name, write := range map[string]func(){
		"under the name of its predecessor, and another": func() {
			in.must("the predecessor", in.applyStatus(reporter, "older-release", own("a")))
			for i := range 3 {
				in.must("apply", in.applyStatus(reporter, "newer-release", own(fmt.Sprint(i))))
			}
			in.must("typed", in.applyStatus(reporter, "newer-release", in.typed("cp-1", contract.MaxEntries, strings.Repeat("k", 1024))))
			in.must("nothing", in.applyStatus(reporter, "newer-release", nil))
		},
		"by a merge patch": func() {
			in.must("the first", in.patch(reporter, "patcher", types.MergePatchType, merged("a")))
			in.must("the next", in.patch(reporter, "patcher", types.MergePatchType, merged("b")))
			in.must("apply", in.applyStatus(reporter, "applier", own("c")))
			in.must("a patch again", in.patch(reporter, "patcher", types.MergePatchType, merged("d")))
		},
		"by a JSON patch": func() {
			item := own("a")["conditions"].([]any)[0]
			in.must("add", in.patch(reporter, "patcher", types.JSONPatchType, []any{map[string]any{"op": "add", "path": "/status/conditions/-", "value": item}}))
			in.must("replace", in.patch(reporter, "patcher", types.JSONPatchType, []any{map[string]any{"op": "replace", "path": "/status/conditions/2/message", "value": "b"}}))
		},
		"of an entry that somebody with more than it has taken over": func() {
			in.must("apply", in.applyStatus(reporter, "reporter", own("a")))
			both := own("b")
			both["readyReplicas"] = 3
			in.must("somebody", in.applyStatus(administrator, "somebody", both))
			in.must("somebody else", in.patch(administrator, "editor", types.MergePatchType, merged("c")))
			in.must("apply", in.applyStatus(reporter, "reporter", own("d")))
		},
		"after more managers than the API server keeps apart": func() {
			for i := range 12 {
				in.must("a manager", in.patch(administrator, fmt.Sprint("updates", i), types.MergePatchType, map[string]any{"status": map[string]any{"readyReplicas": i}}))
				in.must("another", in.patch(administrator, fmt.Sprint("labels", i), types.MergePatchType, merged(fmt.Sprint(i))))
				in.must("patch", in.patch(reporter, fmt.Sprint("patcher", i%2), types.MergePatchType, merged("own "+fmt.Sprint(i))))
			}
		},
		"of a CR without managers": func() {
			in.must("reset", in.patch(administrator, "administrator", types.MergePatchType, map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{}}}}))
			in.must("patch", in.patch(reporter, "patcher", types.MergePatchType, merged("a")))
			in.must("apply", in.applyStatus(reporter, "reporter", own("b")))
			in.must("apply", in.applyStatus(reporter, "reporter", own("c")))
		},
		"of an entry that more managers own than may": func() {
			for i := range 2 * contract.MaxFieldManagers {
				in.must("a manager", in.applyStatus(administrator, fmt.Sprint("m", i), own("a")))
			}
			in.must("apply", in.applyStatus(reporter, "m1", own("b")))
			if err := in.applyStatus(reporter, "reporter", own("c")); !apierrors.IsForbidden(err) {
				in.t.Errorf("under one more name: %v", err)
			}
		},
		"of a CR with many managers": func() {
			for i := range 100 {
				node := fmt.Sprint("node-", i)
				in.must(node, in.applyStatus(administrator, node, conditionOf(node, "True", "AsExpected", strings.Repeat("m", 1000))))
				in.must(node, in.applyStatus(administrator, node+"-typed", in.typed(node, 1, strings.Repeat("k", 500))))
			}
			in.must("apply", in.applyStatus(reporter, "reporter", own("a")))
			in.must("apply", in.applyStatus(reporter, "reporter", in.typed("cp-1", contract.MaxEntries, strings.Repeat("k", 1024))))
		},
	} {
		in.begin()
		in.t.Log(name)
		write()
	}
}
