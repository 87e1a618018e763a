package operator

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/internal/informer"
)

// A cache lists its objects in any order.
func TestSorted(t *testing.T) {
	want := []string{"a", "b", "c", "d", "e"}
	of := informer.New(informer.Source{}, func() {})
	for _, name := range want {
		if err := of.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		var got []string
		for _, one := range sorted[*corev1.Secret](of) {
			got = append(got, one.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, expected %v", got, want)
		}
	}
}
