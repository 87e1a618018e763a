package plainoperator

import "time"

// Operator is the loop's memory between passes. A restart may lose all of it.
type Operator struct {
	defect hooks
	seen   Observed
	last   Decision
	since  time.Time
	passed bool
}

// New is an operator with a defect; the zero Defect has none.
func New(d Defect) *Operator {
	op := &Operator{}
	if d.wrong != nil {
		op.defect = d.wrong()
	}
	return op
}

// Decide is what to do next.
func (op *Operator) Decide(o Observed) Decision {
	o.First = !op.passed
	if o.Waiting = op.last.Waiting; o.Waiting != "" {
		o.Waited = o.Now.Sub(op.since)
	}
	if op.defect.see != nil {
		op.defect.see(&o)
	}
	d := decide(o, op.defect.plan)
	if op.defect.decide != nil {
		op.defect.decide(o, &d)
	}
	if d.Waiting != op.last.Waiting || d.Message != op.last.Message {
		op.since = o.Now
	}
	op.seen, op.last, op.passed = o, d, true
	return d
}

// Report is the conditions after the last decision, whose step failed unless err is nil.
func (op *Operator) Report(err error) []Condition {
	conditions := report(op.seen, op.last, err)
	if op.defect.report != nil {
		op.defect.report(conditions)
	}
	return conditions
}

// Plugin is a plugin's configuration and credentials, as the operator takes them over from what it read.
func (op *Operator) Plugin(p Plugin) Plugin {
	if op.defect.plugin != nil {
		op.defect.plugin(&p)
	}
	return p
}
