package plugin

import (
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

// Timing has every time of the suite.
type Timing struct {
	// Call bounds each call, as the timeout of kube-apiserver's EncryptionConfiguration does (default 3 s there and here).
	Call time.Duration
	// Start bounds the time until a plugin that was started answers Status.
	Start time.Duration
	// Stop bounds the time from SIGTERM until the process has ended. The kubelet grants 30 s.
	Stop time.Duration
	// Watch is how long the constancy of key_id and version is observed.
	Watch time.Duration
	// Notice bounds the time until Status shows a failure, a recovery or a rotation of the KMS: kube-apiserver asks a healthy plugin once a
	// minute (kmsv2PluginHealthzPositiveInterval).
	Notice time.Duration
	// Hook bounds one run of a hook.
	Hook time.Duration
	// Load bounds each check that makes many calls. It ends earlier when all calls are made.
	Load time.Duration
}

// DefaultTiming are the times of a conformance run.
func DefaultTiming() Timing {
	return Timing{
		Call: 3 * time.Second, Start: 30 * time.Second, Stop: 30 * time.Second, Watch: 5 * time.Second, Notice: time.Minute,
		Hook: 30 * time.Second, Load: 20 * time.Second,
	}
}

// Options of a run. The zero value runs all checks.
type Options struct {
	conformance.Selection
	Timing *Timing // nil: DefaultTiming
	// WithoutWaits leaves out the checks that wait on purpose. They are skipped, with that reason.
	WithoutWaits bool
	// Seed of everything that is random in the requests.
	Seed uint64
	// Progress is called after each check; nil: never.
	Progress func(conformance.Result)
	// Waiting receives a line, now and then, while a plugin that the suite started does not listen; nil: none.
	Waiting func(string)
	// Checks are the checks to run; nil: Catalogue.
	Checks []Check
}

// complete fills in what is nil.
func (o *Options) complete() {
	if o.Checks == nil {
		o.Checks = Catalogue()
	}
	if o.Timing == nil {
		timing := DefaultTiming()
		o.Timing = &timing
	}
}
