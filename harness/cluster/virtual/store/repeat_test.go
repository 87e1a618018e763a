package store

import (
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"
)

// An apply that repeats the one before makes what Kubernetes' own code makes of it: the same histories on a store that remembers none.
func TestRepeatsAreMergedAlike(t *testing.T) {
	types := allTypes(t)
	rapid.Check(t, func(t *rapid.T) {
		p, forgetful := newSubject(types), New(types)
		p.server = func(o operation, v *Version, err error) string {
			clear(forgetful.repeats)
			v2, err2 := o.on(forgetful, p.now)
			if text(err) != text(err2) {
				return "error " + text(err) + ", expected " + text(err2)
			}
			if err == nil && !reflect.DeepEqual(v.Object(), v2.Object()) {
				t.Logf("%v", v.Object())
				t.Logf("expected %v", v2.Object())
				return "another object"
			}
			return wrongSize(v)
		}
		if difference := history(t, p); difference != "" {
			t.Fatal(difference)
		}
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A manager that applies another's item instead of its own repeats nothing.
func TestAnotherItemIsNoRepeat(t *testing.T) {
	f := newFixture(t)
	f.apply("a", conditions(condition("A", "1")))
	f.apply("b", conditions(condition("B", "1")))
	f.apply("a", conditions(condition("A", "2")))
	if _, err := f.try("a", conditions(condition("B", "3")), false); !apierrors.IsConflict(err) {
		t.Fatalf("expected a conflict, got %v", err)
	}
}

// An apply of another kind is refused, whatever was applied before.
func TestAnotherKindIsNoRepeat(t *testing.T) {
	f := newFixture(t)
	f.apply("a", conditions(condition("A", "1")))
	f.apply("a", conditions(condition("A", "2")))
	patch := conditions(condition("A", "3"))
	patch.SetKind("KubeScheduler")
	if _, err := f.try("a", patch, false); err == nil {
		t.Fatal("expected an error")
	}
}

// Other values in the same items are a repeat: without it nothing would be wrong, only slow.
func TestRepeatsAreRecognised(t *testing.T) {
	f := newFixture(t)
	live := f.apply("a", conditions(condition("A", "1")))
	if _, ok := f.repeated(f.types.Get(kubeAPIServers), live, conditions(condition("A", "2")), ApplyOptions{Manager: "a", Subresource: "status"}, f.now); !ok {
		t.Fatal("an apply with another message is merged by Kubernetes' code")
	}
}
