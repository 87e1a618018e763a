// Package assetstest gives tests the binaries of a control plane, from where the harness itself finds them.
package assetstest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/kmsharness/kmsharness/harness/assets"
)

// Find skips the test where there are no binaries: a unit test neither downloads nor builds them.
func Find(t testing.TB) assets.Binaries {
	t.Helper()
	b, err := assets.Ensure(t.Context(), assets.Options{LocalOnly: true})
	if errors.Is(err, assets.ErrNotFound) {
		t.Skipf("%v; make e2e BACKEND=local obtains them", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Dir returns the folder of the binaries, for envtest. Booting takes too long for a test with -short.
func Dir(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it boots an API server: make nightly STAGES=unit")
	}
	return filepath.Dir(Find(t).KubeAPIServer)
}
