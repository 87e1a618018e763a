package advertise

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
)

// AccessPath is the non-resource URL for which RBAC must allow the verb "get" to a user that may get the field.
const AccessPath = "/alternative-services"

const (
	// accessLifetime is how long an answer of RBAC is remembered, and accessLimit how many are.
	accessLifetime = time.Minute
	accessLimit    = 4096
	// accessRetry is how long a user does not get the field after RBAC could not be asked. Without it each request would wait.
	accessRetry = 10 * time.Second
	// accessTimeout bounds how long the first request of a user waits for RBAC.
	accessTimeout = time.Second
)

// Access asks RBAC which users may get the field.
type Access struct {
	reviews authorizationclient.SubjectAccessReviewInterface
	user    func(*http.Request) (name string, groups []string)
	clock   clock.PassiveClock

	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	allowed bool
	until   time.Time
}

// NewAccess returns Access for the users that user returns for requests, by default CertificateUser. An API server has authenticated the
// user already; a proxy in front of it authenticates.
func NewAccess(reviews authorizationclient.SubjectAccessReviewInterface, user func(*http.Request) (name string, groups []string)) *Access {
	if user == nil {
		user = CertificateUser
	}
	return &Access{reviews: reviews, user: user, clock: clock.RealClock{}, answers: map[string]answer{}}
}

// CertificateUser is the user of a verified client certificate: its common name, with its organizations as groups.
func CertificateUser(r *http.Request) (name string, groups []string) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return "", nil
	}
	subject := r.TLS.VerifiedChains[0][0].Subject
	return subject.CommonName, subject.Organization
}

// Allowed reports whether the user of a request may get the field. It is Allowed of Options. A user without a name may not.
func (a *Access) Allowed(r *http.Request) (bool, error) {
	name, groups := a.user(r)
	if name == "" {
		return false, nil
	}
	key := name + "\x00" + strings.Join(groups, "\x00")
	now := a.clock.Now()
	a.mu.Lock()
	known, ok := a.answers[key]
	a.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.allowed, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), accessTimeout)
	defer cancel()
	review, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: name, Groups: groups, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: AccessPath, Verb: "get"},
	}}, metav1.CreateOptions{})
	if err != nil {
		if r.Context().Err() == nil { // the client did not cancel
			a.remember(key, answer{until: now.Add(accessRetry)})
		}
		return false, fmt.Errorf("review access of user %q to %s: %w", name, AccessPath, err)
	}
	a.remember(key, answer{allowed: review.Status.Allowed, until: now.Add(accessLifetime)})
	return review.Status.Allowed, nil
}

func (a *Access) remember(key string, known answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.answers) >= accessLimit {
		clear(a.answers)
	}
	a.answers[key] = known
}
