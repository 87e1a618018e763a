package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/contract"
)

// since is the condition's lastTransitionTime. It is required and must not move, also not across a restart, so it is
// read from the condition that stands on the CR, once, before the first write.
//
// When it cannot be read, this tick's result is dropped: an API server that does not answer a get would not take the
// apply either, and a guess would move the time. The one exception is an API server that answers but does not allow
// the get: waiting would not help, and a report with a moved time is worth more than none. It is believed after a while only,
// because one that has just started allows nothing until it has read who may do what.
func (p *Publisher) since(ctx context.Context) (time.Time, error) {
	if !p.transition.IsZero() {
		return p.transition, nil
	}
	cr, err := p.client.get(ctx)
	if err == nil {
		p.transition = TransitionIn(cr, contract.ConditionType(p.node), p.now())
		return p.transition, nil
	}
	if !p.refusedForGood(err) {
		return time.Time{}, fmt.Errorf("read the lastTransitionTime to keep: %w", err)
	}
	p.transition = p.now()
	return p.transition, nil
}

// startingUp is far more than an API server needs from its first answer until it knows who may do what, and far less than a
// report may be missing for.
const startingUp = 5 * time.Second

// refusedForGood says whether err is one of a row of refusals that has lasted for longer than an API server starts up.
func (p *Publisher) refusedForGood(err error) bool {
	if !apierrors.IsForbidden(err) && !apierrors.IsMethodNotSupported(err) {
		p.refused = time.Time{}
		return false
	}
	if p.refused.IsZero() {
		p.refused = p.now()
	}
	return p.now().Sub(p.refused) > startingUp
}

// TransitionIn finds the time since which the condition is True; now if it is not, or if its time cannot be read.
func TransitionIn(cr []byte, conditionType string, now time.Time) time.Time {
	var seen struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(cr, &seen); err != nil {
		return now
	}
	for _, c := range seen.Status.Conditions {
		if c.Type != conditionType || c.Status != contract.ReporterConditionStatus {
			continue
		}
		if at, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil && !at.IsZero() {
			return at
		}
	}
	return now
}
