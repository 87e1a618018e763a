package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Options of the backend. The zero value uses the current context of the kubeconfig that kubectl uses, and images of this project that the
// nodes have.
type Options struct {
	live.SystemUnderTest
	// PluginArgs are further arguments of every fake plugin, quoted as in a command template.
	PluginArgs string
	Placing
}

// Placing says where to deploy to, and from which images.
type Placing struct {
	// Kubeconfig is a file; empty: $KUBECONFIG, or kubectl's default.
	Kubeconfig string
	// NamespacePrefix begins the name of each run, which is that of its namespace; empty: DefaultPrefix.
	NamespacePrefix string
	// ImagePrefix goes before the names of this project's images, ImageTag behind them; empty: DefaultImagePrefix, and the tag of make images.
	ImagePrefix, ImageTag string
}

// Defaults of Placing.
const (
	DefaultPrefix      = "kmsharness"
	DefaultImagePrefix = images.Registry + "kmsharness/"
)

// maxPrefix keeps names that end with the name of a run within the 63 characters of a DNS label.
const maxPrefix = 20

func (o Options) validate() error {
	if err := o.SystemUnderTest.Validate(); err != nil {
		return err
	}
	if o.ReporterIdentity == history.IdentityAdmin {
		return errors.New("--reporter-identity admin: reporters would be administrators of a cluster that is not the harness's; expected least")
	}
	if err := o.CheckPrograms(contained); err != nil {
		return err
	}
	if _, err := command.Split(o.PluginArgs); err != nil {
		return fmt.Errorf("plugin arguments: %w", err)
	}
	if problems := validation.IsDNS1123Label(o.prefix()); len(problems) > 0 || len(o.prefix()) > maxPrefix {
		return fmt.Errorf("--namespace-prefix %q: expected a DNS label of at most %d characters", o.prefix(), maxPrefix)
	}
	return nil
}

func (p Placing) prefix() string { return cmp.Or(p.NamespacePrefix, DefaultPrefix) }

// image is the reference of an image of this project, by the name of its program.
func (p Placing) image(program string) string {
	return cmp.Or(p.ImagePrefix, DefaultImagePrefix) + program + ":" + cmp.Or(p.ImageTag, images.DevTag)
}

// contained returns an error if the image of a program of this project does not have another one.
func contained(program, replaced string) error {
	if inImage(program) == inImage(replaced) {
		return nil
	}
	return fmt.Errorf("it would run in this project's image, which has %s only: expected that", inImage(replaced))
}

// inImage is where the images of this project have their program.
func inImage(program string) string { return "/" + strings.TrimPrefix(program, "/") }

// timing of every scenario is that of the backends local and kind.
func timing() contract.Timing {
	return contract.Timing{
		Interval:          time.Second,
		Jitter:            100 * time.Millisecond,
		ProbeTimeout:      900 * time.Millisecond,
		WriteTimeout:      time.Second,
		AggregatorLatency: time.Second,
	}
}

const (
	// Tolerance is that of the backend kind: kubelets and other tenants of the cluster share the processors.
	Tolerance = time.Second
	// maxNodes is the most that was tried; a pod of five containers each.
	maxNodes = 5
	// maxAggregators is how many containers for aggregators the hub has.
	maxAggregators = 2
	// maxPlugins is how many containers for plugins the pod of a node has.
	maxPlugins = 3
	// maxSkew is how far the clock of a pod may be from that of this machine: the checker compares their times.
	maxSkew = 250 * time.Millisecond

	// bootTimeout bounds the creation of all objects until the pods run; images are on the nodes, or are pulled.
	bootTimeout = 5 * time.Minute
	// resetTimeout bounds making a plane new for a scenario; the longest part are pods of new nodes.
	resetTimeout = 3 * time.Minute
	// removeTimeout bounds the removal of all objects of a run.
	removeTimeout = 2 * time.Minute
	// poll is how often objects and pods are asked whether they are as they should be.
	poll = 100 * time.Millisecond
	// tailEvery is how often copies of journals are read.
	tailEvery = 25 * time.Millisecond
)
