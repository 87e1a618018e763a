package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// statuses writes conditions and reports as somebody else, and makes attempts.
type statuses struct {
	e          *environment
	w          *world
	conditions map[string]map[string]map[string]any
}

// condition puts a condition on the operator CR, or deletes it, as another controller would.
func (st *statuses) condition(_ context.Context, a *scenario.Condition) error {
	kind, manager := a.Type, orDefault(a.Manager, "somebody-else")
	if kind == "" {
		return errors.New("expected a type")
	}
	owned := st.conditions[manager]
	if owned == nil {
		owned = map[string]map[string]any{}
		st.conditions[manager] = owned
	}
	if a.Delete {
		delete(owned, kind)
	} else {
		owned[kind] = st.conditionOf(kind, a.Status, a.Reason, a.Text())
	}
	all := []any{}
	for _, k := range slices.Sorted(maps.Keys(owned)) {
		all = append(all, owned[k])
	}
	return st.applyStatus(manager, map[string]any{"conditions": all})
}

// entries overwrites the entry of a node, or puts entries of nodes that do not exist into the typed list, or takes them away.
func (st *statuses) entries(_ context.Context, a *scenario.Entries) error {
	if a.Node != "" {
		return st.applyStatus(operated.Elsewhere, st.entryElsewhere(a.Node))
	}
	return st.applyStatus(operated.Elsewhere, operated.EntriesElsewhere(st.w.operator.core.TypedPath, a.Count, st.w.k.Now()))
}

func (st *statuses) entryElsewhere(node string) map[string]any {
	return operated.EntryElsewhere(st.w.operator.core.TypedPath, st.e.scenario.Contract == scenario.ContractHealthReports, node, st.e.scenario.Topology.KeyIDs[0], st.w.k.Now())
}

// applyStatus applies what a manager owns of the CR's status.
func (st *statuses) applyStatus(manager string, status map[string]any) error {
	n, err := st.e.admin()
	if err != nil {
		return err
	}
	r := request{user: "system:admin", verb: verbPatch, key: st.w.crKey(), subresource: "status", manager: manager, force: true,
		contentType: audit.ContentTypeApply, body: st.statusBody(status)}
	if err := st.e.ask(n, r).problem(); err != nil {
		return fmt.Errorf("apply the status of %s: %w", manager, err)
	}
	return nil
}

func (st *statuses) conditionOf(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": st.w.k.Now().UTC().Format(time.RFC3339)}
}

func (st *statuses) crBody(conditions []any) []byte {
	return st.statusBody(map[string]any{"conditions": conditions})
}

func (st *statuses) statusBody(status map[string]any) []byte {
	return encode(newObject("operator.openshift.io/v1", st.w.operator.core.Kind, "cluster", map[string]any{"status": status}))
}

// attempt makes one request under the identity of a node's reporter, and says whether it was treated as expected.
func (st *statuses) attempt(_ context.Context, a *scenario.Attempt) error {
	nodes, err := st.e.procs.selectNodes(a.As, true)
	if err != nil {
		return err
	}
	as := nodes[0]
	if a.Method == scenario.AttemptStream {
		return st.attemptStream(a, as)
	}
	r, err := st.attemptOf(a, as.name)
	if err != nil {
		return err
	}
	st.w.asReporter(as.name, &r)
	r.agent, r.byHarness = "kmsharness-attempt", true
	return a.Each(r.verb+" "+r.key.Resource.Resource, func(manager string) (int, string, error) {
		r.manager = orDefault(manager, r.manager)
		rep := st.e.ask(as, r)
		return rep.code, rep.text, rep.err
	})
}

func (st *statuses) attemptOf(a *scenario.Attempt, as string) (request, error) {
	own := request{verb: verbPatch, key: st.w.crKey(), subresource: "status", manager: contract.FieldManager(as), force: true, contentType: audit.ContentTypeApply}
	report := func(kind string) []byte {
		return st.crBody([]any{st.conditionOf(kind, "True", contract.ReporterConditionReason, a.Text())})
	}
	switch verb := a.Method; verb {
	case "apply-condition":
		own.body = report(contract.ConditionType(orDefault(a.Node, as)))
		return own, nil
	case "apply-entry":
		own.body = st.statusBody(st.entryElsewhere(as))
		return own, nil
	case "apply-entries":
		own.body = st.statusBody(operated.EntriesOf(st.w.operator.core.TypedPath, as, a.Size, st.w.k.Now()))
		return own, nil
	case "apply-rollup":
		own.body = report(contract.ConditionDegraded)
		return own, nil
	case verbGet, verbList, verbWatch, verbCreate, verbUpdate, verbDelete, verbPatch, "apply":
		return attempted(a, verb, as)
	default:
		return request{}, fmt.Errorf("verb %q: expected get, list, watch, create, update, patch, apply, delete, apply-condition, apply-entry, apply-entries or apply-rollup", verb)
	}
}

func attempted(a *scenario.Attempt, verb, as string) (request, error) {
	group, plural, subresource := a.Path()
	body, err := a.JSON()
	r := request{verb: verb, subresource: subresource, contentType: audit.ContentTypeMerge, body: body,
		key: objects.Key{Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}, Namespace: a.Namespace, Name: a.Name}}
	if verb == "apply" {
		r.verb, r.contentType, r.manager, r.force = verbPatch, audit.ContentTypeApply, contract.FieldManager(as), true
	}
	return r, err
}
