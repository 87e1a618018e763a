package plugin

import "time"

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
