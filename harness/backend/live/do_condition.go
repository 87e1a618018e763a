package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// somebodyElse is the field manager of conditions whose manager the scenario leaves open.
const somebodyElse = "somebody-else"

// statuses writes conditions and reports as somebody else, and makes attempts.
type statuses struct {
	e          *apiServer
	conditions map[string]map[string]cluster.Object // by manager and type
}

// condition puts a condition on the operator CR, or deletes it, as another controller would: by Server-Side Apply of
// all conditions of that manager, since what an apply leaves out it removes.
func (st *statuses) condition(ctx context.Context, a *scenario.Condition) error {
	kind := a.Type
	if kind == "" {
		return errors.New("expected a type")
	}
	manager := cmp.Or(a.Manager, somebodyElse)
	st.e.changes.turn.Lock() // two applies of one manager must not overtake each other
	defer st.e.changes.turn.Unlock()
	owned := st.conditions[manager]
	if owned == nil {
		owned = map[string]cluster.Object{}
		st.conditions[manager] = owned
	}
	if a.Delete {
		delete(owned, kind)
	} else {
		owned[kind] = cluster.Object{"type": kind, "status": a.Status, "reason": a.Reason, "message": a.Text(),
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	}
	all := []any{}
	for _, c := range owned {
		all = append(all, c)
	}
	return st.applyConditions(ctx, manager, all)
}

func (st *statuses) applyConditions(ctx context.Context, manager string, conditions []any) error {
	return st.applyStatus(ctx, manager, cluster.Object{"conditions": conditions})
}

// entries overwrites the entry of a node, or puts entries of nodes that do not exist into the typed list, or takes them away.
func (st *statuses) entries(ctx context.Context, a *scenario.Entries) error {
	if a.Node != "" {
		return st.applyStatus(ctx, operand.Elsewhere, st.entryElsewhere(a.Node, a.KeyID))
	}
	return st.applyStatus(ctx, operand.Elsewhere, operand.EntriesElsewhere(st.e.operator.TypedPath, a.Count, time.Now()))
}

func (st *statuses) entryElsewhere(node, keyID string) cluster.Object {
	if keyID == "" {
		keyID = st.e.scenario.Topology.KeyIDs[0]
	}
	typed := st.e.scenario.Contract == scenario.ContractHealthReports
	return operand.EntryElsewhere(st.e.operator.TypedPath, typed, node, keyID, time.Now())
}

// encryptionHealth changes the spec of the operator's EncryptionHealth.
func (st *statuses) encryptionHealth(ctx context.Context, a *scenario.EncryptionHealth) error {
	c, err := st.e.Nodes.Admin()
	if err != nil {
		return err
	}
	body, err := json.Marshal(cluster.Object{"spec": cluster.Object{"keyIDs": a.KeyIDs}}) // null removes them
	if err != nil {
		return err
	}
	if _, err := c.Resource(cluster.HealthObjects()).Patch(ctx, st.e.operator.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: somebodyElse}); err != nil {
		return fmt.Errorf("change the EncryptionHealth %s: %w", st.e.operator.Name, err)
	}
	return nil
}

// applyStatus applies what a manager owns of the CR's status.
func (st *statuses) applyStatus(ctx context.Context, manager string, status cluster.Object) error {
	c, err := st.e.Nodes.Admin()
	if err != nil {
		return err
	}
	o := cluster.NewObject("operator.openshift.io/v1", st.e.operator.Kind, core.OperatorObject, cluster.Object{"status": status})
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	if _, err := c.Resource(st.e.operator.Resource).ApplyStatus(ctx, core.OperatorObject, o, options); err != nil {
		return fmt.Errorf("apply the status of %s: %w", manager, err)
	}
	return nil
}

// asTable is what kubectl and oc accept.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// column compares a cell of the ClusterOperator's row.
func (st *statuses) column(ctx context.Context, a *scenario.Column) error {
	c, err := st.e.Nodes.Admin()
	if err != nil {
		return err
	}
	r := cluster.ClusterOperators()
	table, err := askTable(ctx, c, "/apis/"+r.Group+"/"+r.Version+"/"+r.Resource)
	if err != nil {
		return fmt.Errorf("oc get %s: %w", r.Resource, err)
	}
	i := slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return strings.EqualFold(d.Name, a.Name) })
	if i < 0 {
		return fmt.Errorf("oc get %s has no column %s", r.Resource, a.Name)
	}
	for _, row := range table.Rows {
		if name := row.Cells[0]; name != st.e.operator.ClusterOperator {
			continue
		}
		if shown := fmt.Sprint(row.Cells[i]); shown != a.Shows {
			return fmt.Errorf("oc get %s shows %s %s of %s, expected %s", r.Resource, a.Name, shown, st.e.operator.ClusterOperator, a.Shows)
		}
		return nil
	}
	return fmt.Errorf("oc get %s has no row %s", r.Resource, st.e.operator.ClusterOperator)
}

// table reads a list as the API server prints it.
func askTable(ctx context.Context, c *cluster.Client, path string) (table metav1.Table, err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
	if err != nil {
		return table, err
	}
	request.Header.Set("Accept", asTable)
	response, err := c.HTTP.Do(request)
	if err != nil {
		return table, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s: %.300s", response.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &table)
	}
	return table, err
}
