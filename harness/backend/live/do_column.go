package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// asTable is what kubectl and oc accept.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// column compares a cell of the ClusterOperator's row.
func (st *statuses) column(ctx context.Context, a *scenario.Column) error {
	c, err := st.e.Nodes.Admin()
	if err != nil {
		return err
	}
	r := clusterOperators()
	table, err := c.table(ctx, "/apis/"+r.Group+"/"+r.Version+"/"+r.Resource)
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
func (c *Client) table(ctx context.Context, path string) (table metav1.Table, err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return table, err
	}
	request.Header.Set("Accept", asTable)
	response, err := c.http.Do(request)
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
