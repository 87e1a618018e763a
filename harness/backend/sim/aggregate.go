package sim

import (
	"encoding/json"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// view is what a decision rests on. A nil object does not exist.
type view struct {
	cr, co, config *objects.Version
	nodes          []*objects.Version
}

func (a *aggregator) cached() view {
	return view{cr: a.cr.latest(), co: a.co.latest(), config: a.config.latest(), nodes: a.nodes.all()}
}

// live asks the API server for everything at once.
func (a *aggregator) live(done func(view, error)) {
	var v view
	left, failed := 4, error(nil)
	part := func(rep reply, err error) {
		failed = errors.Join(failed, err)
		if left--; left == 0 {
			done(v, failed)
		}
	}
	get := func(to **objects.Version, m *mirror) {
		a.ask(request{verb: verbGet, key: m.key}, a.inTermReply(func(rep reply) {
			err := rep.problem()
			if rep.code == 404 {
				err = nil
			} else if err == nil {
				*to = rep.version
				m.saw(rep.version)
			}
			part(rep, err)
		}))
	}
	get(&v.cr, a.cr)
	get(&v.co, a.co)
	get(&v.config, a.config)
	a.ask(request{verb: verbList, key: a.nodes.key}, a.inTermReply(func(rep reply) {
		err := rep.problem()
		if err == nil {
			v.nodes = rep.list
			a.nodes.sawAll(rep)
		}
		part(rep, err)
	}))
}

func (a *aggregator) inTermReply(f func(reply)) func(reply) {
	term := a.terms
	return func(rep reply) {
		if a.terms == term {
			f(rep)
		}
	}
}

// carryOut writes the rollups first: they carry the news. A removal that fails holds nothing up, and the ClusterOperator is only
// told what the CR already says: not that rollups are gone which could not be removed.
func (a *aggregator) carryOut(in core.Input, d core.Decision) {
	a.writeRollups(d, func(rollups error) {
		if d.WriteRollups && rollups == nil && !a.w.seams.EarlyUnion {
			d = a.unite(in, d)
		}
		a.remove(d, func(memory core.Memory, removal error) {
			d.Memory = memory
			if !d.Remove.Empty() && removal == nil && !a.w.seams.EarlyUnion {
				d = a.unite(in, d)
			}
			before := rollups
			if len(d.Remove.Conditions) > 0 && !a.w.seams.CarelessUnion {
				before = errors.Join(rollups, removal)
			}
			a.writeUnion(d, before, func(union error) { a.stepped(d, errors.Join(rollups, removal, union)) })
		})
	})
}

// unite decides anew about the ClusterOperator from the CR as it stands with the new rollups, or without the old ones.
func (a *aggregator) unite(in core.Input, d core.Decision) core.Decision {
	if cr := a.cr.latest(); cr != nil {
		in.Observed.Conditions = a.reader.observed(cr, a.op.core, false).Conditions
		now := a.w.cores.Decide(in, d.Memory)
		d.ClusterOperator, d.WriteClusterOperator = now.ClusterOperator, now.WriteClusterOperator
	}
	return d
}

func (a *aggregator) writeRollups(d core.Decision, then func(error)) {
	if !d.WriteRollups {
		then(nil)
		return
	}
	o := a.op.core
	a.apply(a.cr, applied("operator.openshift.io/v1", o.Kind, core.OperatorObject, d.Rollups), then)
}

func (a *aggregator) writeUnion(d core.Decision, rollups error, then func(error)) {
	if !d.WriteClusterOperator || rollups != nil || a.co.latest() == nil {
		then(nil)
		return
	}
	body := applied("config.openshift.io/v1", "ClusterOperator", a.op.core.ClusterOperator, d.ClusterOperator)
	a.apply(a.co, body, then)
}

func (a *aggregator) remove(d core.Decision, then func(core.Memory, error)) {
	cr := a.cr.latest()
	if d.Remove.Empty() || cr == nil {
		then(d.Memory, nil)
		return
	}
	ops := core.RemovalPatch(cr.Body(), a.op.core, d.Remove)
	if len(ops) == 0 {
		then(d.Memory.Removed(d.Remove.Nodes...), nil)
		return
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		then(d.Memory, err)
		return
	}
	r := request{verb: verbPatch, key: a.cr.key, subresource: "status", manager: contract.AggregatorFieldManager,
		contentType: audit.ContentTypeJSONPatch, body: patch}
	a.ask(r, a.inTermReply(func(rep reply) {
		if err := rep.problem(); err != nil {
			then(d.Memory, err)
			return
		}
		a.cr.saw(rep.version)
		then(d.Memory.Removed(d.Remove.Nodes...), nil)
	}))
}

// apply puts conditions on an object's status.
func (a *aggregator) apply(on *mirror, body []byte, then func(error)) {
	r := request{verb: verbPatch, key: on.key, subresource: "status", manager: contract.AggregatorFieldManager, force: true,
		contentType: audit.ContentTypeApply, body: body}
	a.ask(r, a.inTermReply(func(rep reply) {
		err := rep.problem()
		if err == nil {
			on.saw(rep.version)
		}
		then(err)
	}))
}

// statusApply is an apply of conditions, its fields in the order in which a map's are encoded.
type statusApply struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Conditions []conditionApply `json:"conditions"`
	} `json:"status"`
}

type conditionApply struct {
	LastTransitionTime string `json:"lastTransitionTime"`
	Message            string `json:"message"`
	Reason             string `json:"reason"`
	Status             string `json:"status"`
	Type               string `json:"type"`
}

func applied(apiVersion, kind, name string, conditions []core.Condition) []byte {
	a := statusApply{APIVersion: apiVersion, Kind: kind}
	a.Metadata.Name, a.Status.Conditions = name, make([]conditionApply, len(conditions))
	for i, c := range conditions {
		a.Status.Conditions[i] = conditionApply{c.LastTransitionTime.UTC().Format(time.RFC3339), c.Message, c.Reason, c.Status, c.Type}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return []byte("{}") // it is made of texts only
	}
	return text
}

// active says whether a cluster's configuration names KMS; without one there is no encryption.
func active(config *objects.Version) bool {
	if config == nil {
		return false
	}
	kind, _, _ := unstructured.NestedString(config.Body(), "spec", "encryption", "type")
	return kind == string(encryption.KMS)
}
