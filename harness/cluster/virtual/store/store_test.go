package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMetadataOfNewAndChangedObjects(t *testing.T) {
	f := newFixture(t)
	first, err := f.Get(cluster)
	f.must(err)
	if first.Generation != 1 || first.UID == "" || !first.Created.Equal(start) || first.ResourceVersion() != "2" {
		t.Errorf("created: %+v", first)
	}
	second := f.apply("a", conditions(condition("A", "1")))
	if second.Generation != 1 || second.UID != first.UID || second.ResourceVersion() != "3" {
		t.Errorf("after a status apply: %+v", second)
	}
	spec := second.Object()
	f.must(unstructured.SetNestedField(spec.Object, "Force", "spec", "managementState"))
	f.must(unstructured.SetNestedField(spec.Object, "not taken", "status", "version"))
	third, err := f.Update(f.now, kubeAPIServers, spec, UpdateOptions{Manager: "u"})
	f.must(err)
	if third.Generation != 2 || conditionOf(third, "A") == nil || third.Body()["status"].(object)["version"] != nil {
		t.Errorf("after an update of the spec: %+v %v", third, third.Body())
	}
	if conditionOf(first, "A") != nil {
		t.Error("an old version was changed")
	}
}

func TestErrors(t *testing.T) {
	f := newFixture(t)
	v := f.apply("a", conditions(condition("A", "1")))
	stale, absent, unlocked := v.Object(), conditions(condition("A", "1")), v.Object()
	stale.SetResourceVersion("2")
	absent.SetName("other")
	unlocked.SetResourceVersion("")
	status := func(o *unstructured.Unstructured) error {
		_, err := f.Update(f.now, kubeAPIServers, o, UpdateOptions{Manager: "u", Subresource: "status"})
		return err
	}
	apply := func(manager string, patch *unstructured.Unstructured) error {
		_, err := f.try(manager, patch, false)
		return err
	}
	_, exists := f.Create(f.now, kubeAPIServers, operator("KubeAPIServer", nil), "u")
	_, gone := f.Get(Key{Resource: kubeAPIServers, Name: "other"})
	_, uid := f.Delete(cluster, Preconditions{UID: "x"})
	for _, c := range []struct {
		name string
		err  error
		is   func(error) bool
		text string
	}{
		{"stale update", status(stale), apierrors.IsConflict, `Operation cannot be fulfilled on kubeapiservers.operator.openshift.io "cluster": the object has been modified; please apply your changes to the latest version and try again`},
		{"update without a version", status(unlocked), apierrors.IsInvalid, `metadata.resourceVersion: Invalid value: 0: must be specified for an update`},
		{"create again", exists, apierrors.IsAlreadyExists, `kubeapiservers.operator.openshift.io "cluster" already exists`},
		{"get", gone, apierrors.IsNotFound, `kubeapiservers.operator.openshift.io "other" not found`},
		{"apply to the status of nothing", apply("a", absent), apierrors.IsNotFound, `kubeapiservers.operator.openshift.io "other" not found`},
		{"delete another", uid, apierrors.IsConflict, `Precondition failed: UID in precondition: x`},
		{"no manager", apply("", conditions(condition("A", "1"))), apierrors.IsInvalid, `fieldManager: Required value: is required for apply patch`},
		{"long manager", apply(strings.Repeat("m", 129), conditions(condition("A", "1"))), apierrors.IsInvalid, `fieldManager: Too long: may not be more than 128 bytes`},
		{"conflict", apply("b", conditions(condition("A", "2"))), apierrors.IsConflict, `Apply failed with 1 conflict: conflict with "a" with subresource "status": .status.conditions[type="A"].message`},
		{"stale apply", apply("a", withVersion(conditions(condition("A", "2")), "2")), apierrors.IsConflict, "the object has been modified"},
		{"unknown field", apply("a", kubeAPIServer(object{"nothing": "x"})), apierrors.IsInternalError, `.status.nothing: field not declared in schema`},
		{"body too large", apply("a", conditions(condition("A", strings.Repeat("x", MaxBodyBytes)))), apierrors.IsRequestEntityTooLargeError, "limit is 3145728"},
		{"object too large", apply("a", conditions(condition("A", strings.Repeat("x", MaxRequestBytes)))), apierrors.IsInternalError, "etcdserver: request is too large"},
	} {
		if c.err == nil || !c.is(c.err) && !strings.Contains(c.name, "unknown") && !strings.Contains(c.name, "object too") || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: got %v, want %s", c.name, c.err, c.text)
		}
	}
	if after, err := f.Get(cluster); err != nil || after != v || f.Revision() != v.Revision {
		t.Errorf("a refused write changed something: %v %v", after, err)
	}
}

func withVersion(o *unstructured.Unstructured, rv string) *unstructured.Unstructured {
	o.SetResourceVersion(rv)
	return o
}

func TestValidation(t *testing.T) {
	bad := func(field string, v any) *unstructured.Unstructured {
		c := condition("A", "1").(object)
		if v == nil {
			delete(c, field)
		} else {
			c[field] = v
		}
		return conditions(c)
	}
	typed := func(field string, v any) *unstructured.Unstructured {
		r := object{"nodeName": "cp-1", "keyID": "1", "status": "Healthy", "lastCheckedTime": "2026-05-08T12:00:00Z", "remoteKeyID": "k"}
		r[field] = v
		return kubeAPIServer(object{"encryptionStatus": object{"healthReports": []any{r}}})
	}
	many := make([]any, 201)
	for i := range many {
		many[i] = object{"nodeName": "cp-1", "keyID": fmt.Sprint(i), "status": "Healthy", "lastCheckedTime": "2026-05-08T12:00:00Z", "remoteKeyID": "k"}
	}
	for _, c := range []struct {
		patch *unstructured.Unstructured
		want  string // empty: accepted
	}{
		{bad("message", "fine"), ""},
		{bad("lastTransitionTime", nil), "status.conditions[0].lastTransitionTime: Required value"},
		{bad("lastTransitionTime", "yesterday"), `status.conditions[0].lastTransitionTime: Invalid value: "yesterday": conditions[0].lastTransitionTime in body must be of type date-time: "yesterday"`},
		{bad("status", "Maybe"), `status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown"`},
		{bad("type", "-"), `status.conditions[0].type: Invalid value: "-": conditions[0].type in body should match '^(`},
		{bad("type", strings.Repeat("a", 317)), `status.conditions[0].type: Too long: may not be more than 316 bytes`},
		{typed("detail", strings.Repeat("ü", 1024)), ""},
		{typed("detail", strings.Repeat("ü", 1025)), "status.encryptionStatus.healthReports[0].detail: Too long: may not be more than 1024 bytes"},
		{typed("detail", ""), "encryptionStatus.healthReports[0].detail in body should be at least 1 chars long"},
		{typed("nodeName", "CP_1"), "nodeName must be a lowercase RFC 1123 subdomain"},
		{kubeAPIServer(object{"encryptionStatus": object{}}), "encryptionStatus in body should have at least 1 properties"},
		{kubeAPIServer(object{"encryptionStatus": object{"healthReports": many}}), "status.encryptionStatus.healthReports: Too many: 201: must have at most 200 items"},
		{kubeAPIServer(object{"readyReplicas": "x"}), ".status.readyReplicas: expected numeric (int or float), got string"},
	} {
		f := newFixture(t)
		_, err := f.try("a", c.patch, false)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestLog(t *testing.T) {
	f := newFixture(t)
	f.apply("a", conditions(condition("A", "1")))
	f.apply("a", conditions(condition("A", "1"))) // nothing changes: nothing is logged
	f.apply("a", conditions(condition("A", "2")))
	_, err := f.Delete(cluster, Preconditions{})
	f.must(err)
	events, err := f.Since(1)
	f.must(err)
	var got []string
	for _, e := range events {
		message, _ := conditionOf(e.Version, "A")["message"].(string)
		got = append(got, fmt.Sprintf("%s %d %s", e.Type, e.Revision, message))
	}
	want := []string{string(watch.Added) + " 2 ", string(watch.Modified) + " 3 1", string(watch.Modified) + " 4 2", string(watch.Deleted) + " 5 2"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %v, want %v", got, want)
	}
	f.Compact(3)
	if events, err := f.Since(3); err != nil || len(events) != 2 {
		t.Errorf("since the compaction: %v, %v", events, err)
	}
	if _, err := f.Since(2); !apierrors.IsResourceExpired(err) {
		t.Errorf("since before the compaction: %v, want 410", err)
	}
}

// Size is what encoding would give.
func TestSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{
			rapid.String().Draw(t, "k"): rapid.String().Draw(t, "v"), "n": rapid.Int64().Draw(t, "n"), "b": rapid.Bool().Draw(t, "b"),
			"list": []any{nil, object{}, []any{}, rapid.String().Draw(t, "item")},
		}
		b, err := json.Marshal(v)
		if err != nil || jsonSize(v) != len(b) {
			t.Fatalf("%s: got %d, want %d (%v)", b, jsonSize(v), len(b), err)
		}
	})
	f := newFixture(t)
	v := f.apply("a\u00fc", conditions(condition("A", "1")))
	if wrong := wrongSize(v); wrong != "" {
		t.Error(wrong)
	}
}
