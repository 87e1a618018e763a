package operator

import (
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// Options of an operator. All are required but Check, Contents and Decide.
type Options struct {
	APIServer
	REST *rest.Config
	// Core are the options of its decisions, Config those of what it reads.
	Core   core.Options
	Config config.Options
	Clock  clock.WithTicker
	// Check bounds a pre-flight check; 0 is half a minute.
	Check time.Duration
	// Random makes key material.
	Random io.Reader
	Log    *slog.Logger
	// Contents may change what a Secret with credentials is taken to hold; nil: it is as it is. See Decide.
	Contents func(version string, data map[string][]byte) map[string][]byte
	// Decide is core.Decide, unless another one is to be tried.
	Decide func(core.Observed, core.Options, time.Time) core.Plan
}

// encrypted are the resources that are encrypted, as an EncryptionConfiguration names them: "secrets".
func (o Options) encrypted() (names []string) {
	for _, r := range o.Encrypted {
		names = append(names, r.GroupResource().String())
	}
	return names
}

// checkTimeout bounds a pre-flight check.
const checkTimeout = 30 * time.Second

func apiServers() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}
}
