package controlplane_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// BenchmarkBoot boots etcd and one API server until /readyz, and the same binaries by controller-runtime's envtest, in turn so
// that both meet the same load. The metric "ratio" is ours divided by envtest's: 1 or less is wanted.
func BenchmarkBoot(b *testing.B) {
	assets := assetstest.Find(b)
	var ours, theirs time.Duration
	for b.Loop() {
		theirs += bootEnvtest(b, assets)
		w := newWorld(b, nil, specs(1)...)
		ours += w.start(b, controlplane.Ready)
		w.end(b)
	}
	n := time.Duration(b.N)
	b.ReportMetric((ours / n).Seconds(), "s/boot")
	b.ReportMetric((theirs / n).Seconds(), "s/envtest-boot")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op") // includes stopping both
}

func bootEnvtest(b *testing.B, binaries assets.Binaries) time.Duration {
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Path = binaries.KubeAPIServer
	env.ControlPlane.Etcd = &envtest.Etcd{Path: binaries.Etcd}
	begin := time.Now()
	if _, err := env.Start(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin)
	if err := env.Stop(); err != nil {
		b.Fatal(err)
	}
	return took
}
