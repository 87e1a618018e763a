package recorder

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/internal/poll"
)

func (r *Recorder) seen(_, userAgent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ours := r.markers[userAgent]; ours {
		r.markers[userAgent] = true
	}
}

// Drain makes sure that what has happened until now is in the history:
//
//   - audit logs: a marker request is sent to every API server that runs. The log is written before an answer is sent,
//     so when the marker's line has been read, the line of every request that was answered before it has been, too. An
//     API server that has ended has written everything that it ever will.
//   - journals: the lines are written before the answers are sent; reading to the end of the file is enough.
//   - watches: what a read with a quorum shows must have been delivered.
func (r *Recorder) Drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	var errs []error
	if r.controlPlane.Traits.Memory == nil && r.anyServing() {
		errs = append(errs, r.watcher.Settle(ctx))
	}
	for _, n := range r.nodes.List() {
		if err := r.DrainAudit(ctx, n); err != nil {
			errs = append(errs, fmt.Errorf("audit log of %s: %w", n.Name, err))
		}
	}
	return errors.Join(append(errs, r.files.Poll())...)
}

// NameAttempt makes the audit id of a request that the harness makes with a credential of the system under test.
func (r *Recorder) NameAttempt() string {
	id := uuid.NewString()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[id] = true
	return id
}

func (r *Recorder) attempted(auditID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts[auditID]
}

func (r *Recorder) anyServing() bool {
	_, err := r.nodes.Admin()
	return err == nil
}

// DrainAudit returns when the audit log of a node was read up to now: a marker request is in it. An API server that has ended writes no more; a paused one
// is an error, because its last lines are missing.
func (r *Recorder) DrainAudit(ctx context.Context, n *cluster.Node) error {
	switch n.Server.Status().Phase {
	case cluster.Never, cluster.Ended:
		return nil
	case cluster.Paused:
		return errors.New("the API server is paused: what it is about to write is missing")
	}
	marker := "kmsharness-marker/" + uuid.NewString()
	r.mu.Lock()
	r.markers[marker] = false
	r.mu.Unlock()
	if err := r.mark(ctx, n, marker); err != nil {
		return fmt.Errorf("marker request: %w", err)
	}
	return r.awaitMarker(ctx, marker)
}

func (r *Recorder) mark(ctx context.Context, n *cluster.Node, marker string) error {
	config, err := r.controlPlane.Credentials.RESTConfig(cluster.RecorderUser, []string{"system:masters"}, n.URL)
	if err != nil {
		return err
	}
	config.UserAgent = marker
	c, err := cluster.NewClient(config)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Get(ctx, cluster.MarkerPath)
	return err
}

func (r *Recorder) awaitMarker(ctx context.Context, marker string) error {
	err := poll.Until(ctx, tailEvery, func() (bool, error) {
		if err := r.files.Poll(); err != nil {
			return false, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.markers[marker], nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the marker request does not appear: %w", err)
	}
	return err
}
