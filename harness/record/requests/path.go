package requests

import (
	"net/http"
	"net/url"
	"strings"
)

// Object is what a request is about, as the field objectRef of an audit event names it.
type Object struct {
	Resource    string `json:"resource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	APIGroup    string `json:"apiGroup,omitempty"`
	APIVersion  string `json:"apiVersion,omitempty"`
	Subresource string `json:"subresource,omitempty"`
}

// Parse returns the verb and the object of a request, by the rules of the Kubernetes API. A request that is about no resource has the
// method as its verb and an empty object.
func Parse(method string, u *url.URL) (verb string, o Object) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	rest, ok := o.group(parts)
	if !ok {
		return strings.ToLower(method), Object{}
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		o.Namespace, rest = rest[1], rest[2:]
	}
	o.Resource = rest[0]
	if len(rest) > 1 {
		o.Name = rest[1]
	}
	if len(rest) > 2 {
		o.Subresource = strings.Join(rest[2:], "/")
	}
	if o.Resource == "namespaces" {
		o.Namespace = o.Name
	}
	return o.verb(method, u.Query()), o
}

// group reads API group and version, and returns the rest of the path; false: it names no resource.
func (o *Object) group(parts []string) (rest []string, ok bool) {
	switch {
	case len(parts) > 2 && parts[0] == "api":
		o.APIVersion = parts[1]
		return parts[2:], true
	case len(parts) > 3 && parts[0] == "apis":
		o.APIGroup, o.APIVersion = parts[1], parts[2]
		return parts[3:], true
	}
	return nil, false
}

func (o *Object) verb(method string, query url.Values) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if o.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	watched := query.Get("watch")
	switch {
	case watched == "true" || watched == "1":
		o.nameFrom(query)
		return "watch"
	case o.Name == "":
		o.nameFrom(query)
		return "list"
	}
	return "get"
}

// nameFrom takes the name of a list or a watch from its field selector, as API servers do.
func (o *Object) nameFrom(query url.Values) {
	if name, ok := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); ok && o.Name == "" && !strings.Contains(name, ",") {
		o.Name = name
	}
}
