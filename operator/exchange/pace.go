package exchange

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/operator/core"
)

// When to look again, though nobody says that anything has changed.
const (
	// Pause is after something was done on a node: nobody tells that a file was loaded.
	Pause = 200 * time.Millisecond
	// glance is in any case: nobody tells that an API server is back, or has gone.
	glance = time.Second
	// Retry is after something failed.
	Retry = time.Second
)

// RequestTimeout bounds each request to the API server.
const RequestTimeout = 10 * time.Second

// CheckCall is how long each call of a pre-flight check may take that takes check at most.
func CheckCall(check time.Duration) time.Duration { return check / 3 }

// Again is when to look again after a plan was carried out.
func Again(p core.Plan) time.Duration {
	if len(p.Actions) > 0 {
		return Pause
	}
	if p.Again == 0 {
		return glance
	}
	return min(p.Again, glance)
}

// ErrBehind is for an action that rests upon what is no longer there.
var ErrBehind = errors.New("it is no longer as it was observed")

// Behind says whether an action failed because the caches were behind, which is no failure.
func Behind(err error) bool {
	return errors.Is(err, ErrBehind) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}
