package swarm

import (
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Plan says what is drawn.
type Plan struct {
	// Length of the whole, in virtual time, the liveness phase with it; it may get longer by what the last fault takes. Zero is the
	// short form with a few episodes.
	Length time.Duration
	// Timing of what is simulated, so that faults can be laid out in its intervals; zero is that of local.
	Timing contract.Timing
	// Operator has an operator switch the encryption in every seed, in the short form.
	Operator bool
	// Contract is the wire form of every seed; empty: each seed draws its own. The rest of a seed is the same.
	Contract string
	// Streams has reporters stream in every seed. The rest of a seed is the same.
	Streams bool
}

// reportsTo is the end of a reporter's link.
func (p Plan) reportsTo() string {
	if p.Streams {
		return history.RoleAggregator
	}
	return history.RoleAPIServer
}

// flags are those of kmsharness simulate that ask for the plan.
func (p Plan) flags() (out string) {
	if p.Length > 0 {
		out += " --hours " + strconv.FormatFloat(p.Length.Hours(), 'g', -1, 64)
	}
	if p.Operator {
		out += " --operator"
	}
	if p.Contract != "" {
		out += " --contract " + p.Contract
	}
	if p.Streams {
		out += " --publish " + scenario.PublishStream
	}
	return out
}

func (p Plan) withDefaults() Plan {
	if p.Timing == (contract.Timing{}) {
		p.Timing = live.Timing()
	}
	return p
}

// liveness is the phase after the last fault has ended. The contract's bounds are those of a cluster with an aggregator in charge; one
// that has to take over may need as long as a lease, for which staleness stands here. A rotation is over when the last plugin has
// noticed it, three intervals late at most. What is expected may be so at once, since a fault that has just ended need not have been
// noticed: a probe from before its end is reported a moment later, and what an aggregator had decided is written as soon as its way is
// free. That is no flapping, and within the recovery bound it is over: there is a pause of that length before all must stay well.
func liveness() steps {
	return steps{
		{Parallel: steps{
			expect("recovery + cleanup", `kmsActive ? reports.size() == plugins.size() && plugins.all(p, report[p.node][p.keyID].status == "healthy" && report[p.node][p.keyID].fresh) `+
				`: reports.size() == 0`),
			expect("recovery + staleness", `kmsActive ? rollup.degraded.status == "False" && rollup.degraded.reason == "AsExpected" && rollup.available.status == "True" `+
				`: !rollup.degraded.exists && !rollup.available.exists`),
			expect("3I + recovery + staleness", `kmsActive ? rollup.progressing.reason == (plugins.exists(p, p.keyID != plugins[0].keyID) ? "KeyMigrationInProgress" : "AsExpected") `+
				`: !rollup.progressing.exists`),
			expect("recovery + staleness", clusterOperatorWell),
		}},
		wait("recovery"),
		holds("4I", `!kmsActive || rollup.degraded.status == "False" && rollup.available.status == "True" && clusterOperator.degraded.status == "False"`),
	}
}

const clusterOperatorWell = `!kmsActive || clusterOperator.degraded.status == "False" && clusterOperator.available.status == "True"`
