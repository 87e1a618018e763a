package operated

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/core"
)

const (
	// LoadEvery is how often the load of an operator's switch writes: it lasts longer than that of a direct one.
	LoadEvery = 250 * time.Millisecond
	// ReadinessEvery is the period of the readiness probe in kube-apiserver's static pod.
	ReadinessEvery = 5 * time.Second
	// Check bounds a pre-flight check: long enough for a plugin to start on a busy machine.
	Check = 8 * time.Second
	// settle is how long all nodes must report a new kekID before anything is encrypted anew under it. A kube-apiserver that is probed asks its
	// plugin again when the last answer is 20 s old (kmsPluginHealthzPositiveTTL in k8s.io/apiserver), so it is that, a probe and a reserve.
	settle = 20*time.Second + ReadinessEvery + 5*time.Second
	// retry is the pause after a check that failed.
	retry = 2 * time.Second
	// keep is how many old revisions and keys stay: few, so that pruning is seen.
	keep = 3
)

// CoreOptions are those of an operator in a scenario.
func CoreOptions(t contract.Timing) core.Options {
	opts := core.DefaultOptions()
	opts.Interval, opts.Settle, opts.Retry, opts.Keep = t.Interval, settle, retry, keep
	return opts
}
