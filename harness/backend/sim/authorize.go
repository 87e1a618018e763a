package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// forbids says why a request is refused; empty if it is not. It is what the manifests of reporter and aggregator allow (ci/manifests):
// RBAC, and an admission policy that narrows a reporter to its own entry. Other users are the harness, which may do everything.
func (w *world) forbids(r *request) string {
	node, isReporter := contract.NodeOfReporter(r.user, r.tokenNode)
	allowed := true
	switch {
	case isReporter:
		allowed = w.reporterMay(node, r)
	case r.user == contract.AggregatorIdentity:
		allowed = w.aggregatorMay(r)
	}
	if allowed {
		return ""
	}
	return fmt.Sprintf("%s %q is forbidden: User %q cannot %s it", resourceName(r.key.Resource), r.key.Name, r.user, r.verb)
}

func (w *world) reporterMay(node string, r *request) bool {
	if !w.reportsTo(r.key) || w.connectivity == history.ConnectStream {
		return false
	}
	switch r.verb {
	case verbGet:
		return r.subresource == ""
	case verbPatch:
		return r.subresource == "status" && r.contentType == audit.ContentTypeApply && (w.hooks.AnyToken && r.tokenNode != "" || w.onlyOwn(node, r) && w.mayOwn(node, r))
	}
	return false
}

func (w *world) aggregatorMay(r *request) bool {
	reads := r.verb == verbGet || r.verb == verbList || r.verb == verbWatch
	switch r.key.Resource {
	case clusterOperators():
		return reads || r.verb == verbPatch && r.subresource == "status"
	case nodeObjects(), apiServerConfigs():
		return reads
	case healthObjects():
		return w.connectivity == history.ConnectStream && (reads || r.verb == verbUpdate && r.subresource == "status")
	case leases():
		return r.verb == verbGet || r.verb == verbCreate || r.verb == verbUpdate
	}
	return w.reportsTo(keyOf(r.key.Resource, core.OperatorObject)) && (reads || r.verb == verbPatch && r.subresource == "status")
}

// reportsTo says whether a CR is that of an API server's operator. The reporters of all API servers of a node have one identity, and so have
// their aggregators.
func (c *cluster) reportsTo(key objects.Key) bool {
	if key == c.main.crKey() {
		return true
	}
	return slices.ContainsFunc(c.aggregated, func(f *world) bool { return key == f.crKey() })
}

// mayOwn reports whether the field manager of an apply may own a node's entry. It may not if that removed what else this manager alone owns, or
// if the entry had too many managers.
func (w *world) mayOwn(node string, r *request) bool {
	v, err := w.store.Get(r.key)
	if err != nil {
		return true
	}
	owners := map[string]bool{}
	for field, managers := range w.observer.owners.Of(v.ManagedFields()) {
		if field == "condition/"+contract.ConditionType(node) || strings.HasPrefix(field, "report/"+node+"/") {
			for _, m := range managers {
				owners[m] = true
			}
		} else if len(managers) == 1 && managers[0] == r.manager {
			return false
		}
	}
	return w.hooks.AnyManagers || owners[r.manager] || len(owners) < contract.MaxFieldManagers
}

// onlyOwn says whether an apply holds a node's entry and nothing else. What has another shape is refused like what is not JSON.
func (w *world) onlyOwn(node string, r *request) bool {
	o, err := r.object()
	if err != nil {
		return false
	}
	lists, ok := statusLists(o.Object)
	if !ok {
		return false
	}
	own := func(items []any, field, want string) bool {
		for _, item := range items {
			fields, _ := item.(map[string]any)
			if text, _ := fields[field].(string); text != want {
				return false
			}
		}
		return true
	}
	// What is more than the whole list holds, the schema refuses before the policy is asked.
	typed := max(len(lists[1]), len(lists[2]))
	few := typed <= contract.MaxEntries || typed > contract.MaxTypedReports
	small := w.hooks.AnySize || textBytes(lists[0], "status", "reason", "message") <= contract.MaxReportBytes &&
		max(textBytes(lists[1], "keyID", "remoteKeyID", "detail"), textBytes(lists[2], "keyID", "remoteKeyID", "detail")) <= contract.MaxReportBytes
	return nothingElse(o.Object) && few && small && own(lists[0], "type", contract.ConditionType(node)) && own(lists[1], "nodeName", node) && own(lists[2], "nodeName", node)
}

// textBytes is the length of the fields of items.
func textBytes(items []any, names ...string) (n int) {
	for _, item := range items {
		fields, _ := item.(map[string]any)
		for _, name := range names {
			text, _ := fields[name].(string)
			n += len(text)
		}
	}
	return n
}

// nothingElse reports whether a status has the lists of reports and no other field.
func nothingElse(body map[string]any) bool {
	only := func(o map[string]any, names ...string) bool {
		for name := range o {
			if !slices.Contains(names, name) {
				return false
			}
		}
		return true
	}
	status, _ := fieldsAt(body, "status")
	oauth, _ := fieldsAt(status, "oauthAPIServer")
	if status != nil && len(status) == 0 || oauth != nil && len(oauth) == 0 {
		return false // a record in managedFields, of no entry
	}
	for _, parent := range []map[string]any{status, oauth} {
		if encryption, _ := fieldsAt(parent, "encryptionStatus"); !only(encryption, "healthReports") {
			return false
		}
	}
	return only(status, "conditions", "encryptionStatus", "oauthAPIServer") && only(oauth, "encryptionStatus")
}
