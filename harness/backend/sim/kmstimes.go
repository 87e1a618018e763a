package sim

import "time"

// kmsTimes are the time spans of k8s.io/apiserver's KMS v2 code. They are the same on every backend; what differs is named in
// Options.
type kmsTimes struct {
	healthyPoll, failingPoll time.Duration // between two looks at Status
	keyLifetime              time.Duration // how long a key is good for writes after the last Status that named its KEK
	healthGood, healthBad    time.Duration // how long the outcome of a Status is believed
	call                     time.Duration // of each RPC, if the configuration says nothing
	opened                   time.Duration // how long a key that was decrypted stays in memory
	filePoll                 time.Duration // between two looks at the configuration
	leastGrace               time.Duration // that a new configuration gets to become healthy
	gracePoll                time.Duration
}

// realKMSTimes is confirmed against a real kube-apiserver as far as that can be seen from outside (docs/model.md).
func realKMSTimes() kmsTimes {
	return kmsTimes{healthyPoll: time.Minute, failingPoll: 10 * time.Second, keyLifetime: 3 * time.Minute,
		healthGood: 20 * time.Second, healthBad: 3 * time.Second, call: 3 * time.Second, opened: 24 * time.Hour,
		filePoll: time.Minute, leastGrace: 10 * time.Second, gracePoll: 100 * time.Millisecond}
}

// localFilePoll is what the harness tells its own kube-apiserver: a minute is longer than most scenarios.
const localFilePoll = time.Second

// Limits of what a plugin may answer, in bytes.
const (
	maxKeyIDBytes      = 1 << 10
	maxDEKSourceBytes  = 1 << 10
	maxAnnotationBytes = 32 << 10
)
