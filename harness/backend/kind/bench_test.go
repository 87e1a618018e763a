package kind

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/process"
)

// BenchmarkReady compares the time from nothing to a cluster whose nodes are all ready with that of plain `kind create
// cluster`, with the same node image, one after the other. Run it with -benchtime 1x: a round takes minutes.
func BenchmarkReady(b *testing.B) {
	if err := checkEngine(b.Context()); err != nil {
		b.Skip(err)
	}
	nodeImage, _, err := image.Resolve(b.Context())
	if err != nil {
		b.Skip(err)
	}
	for _, nodes := range []int{1, 3} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			var plain, ours time.Duration
			for range b.N {
				one, other := timePlain(b, nodeImage, nodes), timeOurs(b, nodeImage, nodes)
				b.Logf("plain %.1f s, ours %.1f s", one.Seconds(), other.Seconds())
				plain, ours = plain+one, ours+other
			}
			b.ReportMetric(0, "ns/op") // meaningless here: it is the sum of both
			b.ReportMetric(plain.Seconds()/float64(b.N), "plain-s")
			b.ReportMetric(ours.Seconds()/float64(b.N), "ours-s")
			b.ReportMetric(ours.Seconds()/plain.Seconds(), "ours/plain")
		})
	}
}

// readyTimeout bounds a cluster of three nodes on a busy machine.
const readyTimeout = 10 * time.Minute

func timePlain(b *testing.B, nodeImage string, nodes int) time.Duration {
	c := &v1alpha4.Cluster{TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"}}
	for range nodes {
		c.Nodes = append(c.Nodes, v1alpha4.Node{Role: v1alpha4.ControlPlaneRole})
	}
	return timeCreate(b, kindcluster.NewProvider(kindcluster.ProviderWithDocker()), "plain", nodeImage, c)
}

func timeOurs(b *testing.B, nodeImage string, nodes int) time.Duration {
	dir, err := process.NewRunDir(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	name := fmt.Sprintf(namePrefix+"%d-ready", os.Getpid())
	boot := &booting{names: cluster.NodeNames(nodes), bootSpec: bootSpec{name: name, dir: filepath.Join(dir.Path, "k1"), nodeImage: nodeImage, runDir: dir.Path, shape: pool.Shape{Nodes: nodes},
		programs: cluster.NewPrograms(dir.Path, func(string) {}), progress: func(string) {}}}
	boot.p = newControlPlane(boot.bootSpec)
	p := boot.p
	begin := time.Now()
	if err := errors.Join(boot.prepareFolders(b.Context()), boot.prepare(b.Context())); err != nil {
		b.Fatal(err)
	}
	preparing := time.Since(begin)
	took := timeCreate(b, p.clusters.provider, name, nodeImage, config(name, p.layout, boot.names))
	if err := p.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		b.Fatal(err)
	}
	return preparing + took
}

// timeCreate makes a cluster, waits until its nodes are ready, and deletes it.
func timeCreate(b *testing.B, provider *kindcluster.Provider, name, nodeImage string, c *v1alpha4.Cluster) time.Duration {
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	c.Name = name
	begin := time.Now()
	err := provider.Create(name, kindcluster.CreateWithV1Alpha4Config(c), kindcluster.CreateWithNodeImage(nodeImage), kindcluster.CreateWithKubeconfigPath(kubeconfig),
		kindcluster.CreateWithWaitForReady(readyTimeout), kindcluster.CreateWithDisplayUsage(false), kindcluster.CreateWithDisplaySalutation(false))
	took := time.Since(begin)
	if closing := provider.Delete(name, kubeconfig); err != nil || closing != nil {
		b.Fatal(err, closing)
	}
	return took
}
