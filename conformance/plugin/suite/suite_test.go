package suite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/conformance/plugin"
	"github.com/kmsharness/kmsharness/conformance/plugin/suite"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	fake "github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
)

func TestSuite(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "a plugin in this process")
}

var _ = suite.Describe("fake plugin", subject, plugin.Options{WithoutWaits: true, Seed: 1})

// subject serves the fake plugin in this process until the suite ends.
func subject() plugin.Subject {
	dir, err := os.MkdirTemp("", "suite-")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(dir, "kms.sock")}
	kms, err := remotekms.New(remotekms.Options{})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	p := fake.New(fake.Options{Name: "node/1", Key: "default", Service: kms, Clock: clock.RealClock{}})
	s := server.New(server.Options{Listen: at, Plugin: &fake.Service{Plugin: p}, KeyID: "1"})
	ctx, cancel := context.WithCancel(context.Background())
	gomega.Expect(p.Poll(ctx)).To(gomega.Succeed())
	gomega.Expect(s.Start()).To(gomega.Succeed())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	ginkgo.DeferCleanup(func() {
		cancel()
		gomega.Expect(<-ended).To(gomega.Succeed())
		_ = os.RemoveAll(dir)
	})
	return plugin.Subject{Endpoint: at.String()}
}
