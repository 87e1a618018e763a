package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// settledFor is how long everything must stay healthy at the end: two intervals, so that every reporter has written at
// least once more.
const settledFor = "2I"

const (
	// healthy is the control before: exactly the expected plugins are reported, all healthy, and the rollups say so.
	// API is where an API server's variables are: nothing, or apiServer["NAME"] and a point.
	healthy = `APIkmsActive && ` + rollupsSay + ` && APIplugins.size() > 0 && APIreports.size() == APIplugins.size() && ` +
		`APIplugins.all(p, p.node in APIreport && p.keyID in APIreport[p.node] && APIreport[p.node][p.keyID].status == "healthy")`
	// fresh is demanded after the steps, when a report may still be one from before an outage.
	fresh = `APIplugins.all(p, APIreport[p.node][p.keyID].fresh)`
	// gone is what a cluster looks like that does not use KMS.
	gone           = `!APIkmsActive && APIreports.size() == 0 && ` + noRollups
	goneButReports = `!APIkmsActive && ` + noRollups
	noRollups      = `!APIrollup.degraded.exists && !APIrollup.available.exists && !APIrollup.progressing.exists`
	// well is the control after: the steps may have disabled KMS.
	well = gone + " || " + healthy + " && " + fresh
)

// What an aggregator of the profile convergence says in a cluster that is well. It leaves the reports of a cluster that does not use KMS.
const (
	agreed     = `conditions["` + contract.ConditionConvergenceProgressing + `"].status == "False" && conditions["` + contract.ConditionConvergenceDegraded + `"].status == "False"`
	rollupsSay = `APIrollup.degraded.status == "False" && APIrollup.degraded.reason == "AsExpected" && APIrollup.available.status == "True"`
)

// before returns the control before the steps. An operator begins with clear text, since enabling encryption is part of
// what is tested. Without this control a scenario would blame its fault for a control plane that never was healthy.
func (r *run) before() string {
	if r.scenario.Topology.ByOperator() {
		return gone
	}
	return healthy
}

// ofEach is an expression that demands the same of every API server.
func (r *run) ofEach(text string) string {
	if r.scenario.Topology.AggregatorProfile == contract.AggregatorConvergence {
		text = strings.NewReplacer(gone, "!APIkmsActive", rollupsSay, agreed).Replace(text)
	}
	if r.scenario.LastKeyStays {
		text = strings.ReplaceAll(text, gone, goneButReports)
	}
	all := strings.ReplaceAll(text, "API", "")
	if further := r.scenario.Topology.Aggregated(); len(further) > 0 {
		all = "(" + all + ")"
		for _, name := range further {
			all += " && (" + strings.ReplaceAll(text, "API", fmt.Sprintf("apiServer[%q].", name)) + ")"
		}
	}
	if r.scenario.AnyReason {
		return scenario.StatusForReason(all)
	}
	return all
}

// phases runs everything but the end. An error means that the run was interrupted; a failed expectation is no error. The
// controls have ids "before.expect", "after.expect" and "after.holds", which results and documentation use.
func (r *run) phases(ctx context.Context) error {
	if r.scenario.Topology.Start != scenario.StartStopped {
		r.phase(history.PhaseBefore)
		if err := r.drive(ctx, r.control("before.expect", r.ofEach(r.before()), scenario.ModeWithin, 2*r.metadata.Timing.DetectionBound())); err != nil {
			return err
		}
	}
	if !r.failed {
		r.phase(history.PhaseSteps)
		r.began = r.opts.Runtime.Now()
		if err := r.drive(ctx, &sequence{run: r, steps: r.scenario.Steps, id: "steps", free: r.began}); err != nil {
			return err
		}
	}
	if r.failed || len(r.missed) > 0 {
		r.opts.OnFailure(ctx)
	}
	if err := r.heal(ctx); err != nil {
		return err
	}
	if r.failed {
		return nil
	}
	return r.after(ctx)
}

func (r *run) after(ctx context.Context) error {
	r.phase(history.PhaseAfter)
	within := r.control("after.expect", r.ofEach(well), scenario.ModeWithin, r.afterBound())
	if err := r.drive(ctx, within); err != nil || r.failed {
		return err
	}
	return r.drive(ctx, r.control("after.holds", r.ofEach(well), scenario.ModeHolds, r.resolve(scenario.D(settledFor))))
}

func (r *run) control(id, text string, mode scenario.Mode, bound time.Duration) *expectation {
	x := r.expect(scenario.Expectation{Mode: mode, CEL: text}, id)
	x.bound, x.control = bound, true
	return x
}

// afterBound is the longest of the contract's promises about recovery, plus the time until an aggregator is in charge
// and until what healing started is up.
func (r *run) afterBound() time.Duration {
	t := r.metadata.Timing
	takeover := cmp.Or(r.metadata.TakeoverAllowance, 4*t.Interval)
	return max(t.RecoveryBound(), t.CleanupBound()) + takeover + r.opts.Limits.StartUp
}
