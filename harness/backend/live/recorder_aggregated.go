package live

import (
	"github.com/kmsharness/kmsharness/harness/record/envelope"
	"github.com/kmsharness/kmsharness/harness/record/journal"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// targets are the objects that are watched: those of every API server's operator.
func (e *Environment) targets() []watch.Target {
	targets := operator.targets
	if e.traits.Streaming {
		targets = operator.streamedTargets
	}
	all := targets(e.operator)
	for _, p := range aggregatedOf(e.controlPlane) {
		if op, err := operatorNamed(scenario.OperatorOf(p.APIServer())); err == nil {
			all = append(all, targets(op)...)
		}
	}
	return all
}

// of is a part of the recorder: what only a further API server has.
func (r *recorder) of(f *Environment) (*recorder, error) {
	p := &recorder{
		controlPlane: f.controlPlane, prefix: f.apiServer + "/", sink: r.sink, to: f.sink, wg: r.wg, files: r.files, secrecy: r.secrecy, watcher: r.watcher, ctx: r.ctx,
		envelope: &envelope.Recorder{Sink: f.sink, Now: r.envelope.Now}, journal: &journal.Recorder{Sink: f.sink},
	}
	for _, n := range f.controlPlane.Nodes().List() {
		log := func(line []byte) error { return p.envelope.Line(n.Name, line) }
		if err := r.files.Add(n.Server.LogFile(), tail.FromEnd, r.searched(p.prefix+"log/"+n.Name, log)); err != nil {
			return nil, err
		}
		for _, g := range n.Plugins() {
			if err := p.followPlugin(g, tail.FromEnd); err != nil {
				return nil, err
			}
		}
		p.scrape(n)
	}
	return p, nil
}
