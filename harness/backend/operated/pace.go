package operated

import (
	"time"
)

const (
	// LoadEvery is how often the load of an operator's switch writes: it lasts longer than that of a direct one.
	LoadEvery = 250 * time.Millisecond
	// ReadinessEvery is the period of the readiness probe in kube-apiserver's static pod.
	ReadinessEvery = 5 * time.Second
	// Check bounds a pre-flight check: long enough for a plugin to start on a busy machine.
	Check = 8 * time.Second
)
