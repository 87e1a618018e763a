package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// attempt makes a request under the identity of a node's reporter, straight to that node's API server, and checks how it was treated.
// A stream goes to the aggregator.
func (st *statuses) attempt(ctx context.Context, a *scenario.Attempt) error {
	nodes, err := st.e.procs.selectNodes(a.As, true)
	if err != nil {
		return err
	}
	as := nodes[0]
	if a.Method == scenario.AttemptStream {
		return st.attemptStream(ctx, a, as)
	}
	request, err := st.attemptOf(a, as.Name)
	if err != nil {
		return err
	}
	request.auditID = st.e.recorder.nameAttempt
	c, err := st.clientOf(ctx, as)
	if err != nil {
		return err
	}
	defer c.Close()
	return a.Each(request.method+" "+request.path, func(manager string) (int, string, error) {
		if manager != "" {
			request.query.Set("fieldManager", manager)
		}
		return request.send(ctx, c)
	})
}

// clientOf is a client of a node's API server with the identity of the node's reporter.
func (st *statuses) clientOf(ctx context.Context, as *Node) (*Client, error) {
	config, err := st.e.sut.configOf(ctx, as)
	if err != nil {
		return nil, err
	}
	config.Host, config.UserAgent = as.Server.URL(), "kmsharness-attempt"
	return NewClient(config)
}

// apiRequest is a request to the API by hand: a client library would refuse some of what is to be tried.
type apiRequest struct {
	method, path, contentType string
	query                     url.Values
	body                      []byte
	auditID                   func() string // names the next request
}

func (st *statuses) attemptOf(a *scenario.Attempt, as string) (apiRequest, error) {
	verb := a.Method
	switch verb {
	case "apply-condition":
		return st.applyAs(as, conditionOf(a, contract.ConditionType(orDefault(a.Node, as))))
	case "apply-entry", "apply-entries":
		op, err := core.OperatorByName(st.e.operator.flag)
		if err != nil {
			return apiRequest{}, err
		}
		if verb == "apply-entry" {
			return st.applyAs(as, st.entryElsewhere(op, as))
		}
		return st.applyAs(as, operated.EntriesOf(op.TypedPath, as, a.Size, time.Now()))
	case "apply-rollup":
		return st.applyAs(as, conditionOf(a, contract.ConditionDegraded))
	}
	r := apiRequest{path: resourcePath(a), query: url.Values{}, contentType: "application/json"}
	switch verb {
	case "get", "list":
		r.method = http.MethodGet
	case "watch":
		r.method = http.MethodGet
		r.query.Set("watch", "true")
		r.query.Set("timeoutSeconds", "1")
	case "create":
		r.method, r.path = http.MethodPost, strings.TrimSuffix(r.path, "/"+a.Name)
	case "update":
		r.method = http.MethodPut
	case "delete":
		r.method = http.MethodDelete
	case "patch":
		r.method, r.contentType = http.MethodPatch, audit.ContentTypeMerge
	case "apply":
		r.method, r.contentType = http.MethodPatch, audit.ContentTypeApply
		r.query.Set("fieldManager", contract.FieldManager(as))
		r.query.Set("force", "true")
	default:
		return r, fmt.Errorf("verb %q: expected get, list, watch, create, update, patch, apply, delete, apply-condition, apply-entry, apply-entries or apply-rollup", verb)
	}
	if r.method == http.MethodGet || r.method == http.MethodDelete {
		return r, nil
	}
	var err error
	r.body, err = a.JSON()
	return r, err
}

// conditionOf is a status with one condition.
func conditionOf(a *scenario.Attempt, conditionType string) object {
	return object{"conditions": []any{object{"type": conditionType, "status": "True", "reason": contract.ReporterConditionReason, "message": a.Text(),
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
}

// applyAs applies a status to the operator CR under the field manager of a node's reporter.
func (st *statuses) applyAs(as string, status object) (apiRequest, error) {
	body, err := json.Marshal(newObject("operator.openshift.io/v1", st.e.operator.kind, cluster, object{"status": status}).Object)
	r := st.e.operator.resource
	return apiRequest{
		method: http.MethodPatch, contentType: audit.ContentTypeApply, body: body,
		path:  "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource + "/" + cluster + "/status",
		query: url.Values{"fieldManager": {contract.FieldManager(as)}, "force": {"true"}},
	}, err
}

// resourcePath is the path of an object; every API that is of interest here is at v1.
func resourcePath(a *scenario.Attempt) string {
	group, plural, subresource := a.Path()
	parts := []string{"api", "v1"}
	if group != "" {
		parts = []string{"apis", group, "v1"}
	}
	if a.Namespace != "" {
		parts = append(parts, "namespaces", a.Namespace)
	}
	parts = append(parts, plural, a.Name, subresource)
	return "/" + strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}

// send returns the status and the text of the API server's answer.
func (r apiRequest) send(ctx context.Context, c *Client) (code int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	target := c.url + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", r.contentType)
	request.Header.Set("Audit-ID", r.auditID())
	response, err := c.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	return response.StatusCode, string(body), err
}
