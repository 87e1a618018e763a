package exchange

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/operator/core"
)

// Intervals of polling where no event announces a change.
const (
	// Pause follows an action on a node: no event announces that an API server has loaded a file.
	Pause = 200 * time.Millisecond
	// pollInterval is the longest: no event announces that an API server has started or ended.
	pollInterval = time.Second
	// Retry follows a failure.
	Retry = time.Second
)

// RequestTimeout bounds each request to the API server.
const RequestTimeout = 10 * time.Second

// CheckCall is how long each call of a pre-flight check may take that takes check at most.
func CheckCall(check time.Duration) time.Duration { return check / 3 }

// Again is how long to wait after a plan was carried out.
func Again(p core.Plan) time.Duration {
	if len(p.Actions) > 0 {
		return Pause
	}
	if p.Again == 0 {
		return pollInterval
	}
	return min(p.Again, pollInterval)
}

// ErrBehind is for an action that rests upon what is no longer there.
var ErrBehind = errors.New("it is no longer as it was observed")

// Behind says whether an action failed because the caches were behind, which is no failure.
func Behind(err error) bool {
	return errors.Is(err, ErrBehind) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}
