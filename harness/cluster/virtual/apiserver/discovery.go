package apiserver

import (
	"io"
	"net/http"
	"strings"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// other answers what is about no object: health, discovery and the version.
func (s *Server) other(w http.ResponseWriter, q *Request) {
	p := strings.Split(strings.Trim(q.Path, "/"), "/")
	switch {
	case p[0] == "readyz" || p[0] == "livez" || p[0] == "healthz":
		if s.Ready != nil && p[0] != "livez" {
			if err := s.Ready(q.HTTP); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		_, _ = io.WriteString(w, "ok") // the client has gone
	case q.Path == "/metrics" && s.Metrics != nil:
		s.Metrics.ServeHTTP(w, q.HTTP)
	case q.Path == "/version":
		write(w, http.StatusOK, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0"})
	case q.Path == "/api":
		write(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case q.Path == "/apis":
		write(w, http.StatusOK, groups(s.Cluster.types))
	case len(p) == 2 && p[0] == "api":
		write(w, http.StatusOK, resources(s.Cluster.types, schema.GroupVersion{Version: p[1]}))
	case len(p) == 3 && p[0] == "apis":
		write(w, http.StatusOK, resources(s.Cluster.types, schema.GroupVersion{Group: p[1], Version: p[2]}))
	default:
		http.NotFound(w, q.HTTP)
	}
}

func groups(types *store.Types) metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, t := range types.All() {
		gv := metav1.GroupVersionForDiscovery{GroupVersion: t.Resource.GroupVersion().String(), Version: t.Resource.Version}
		last := len(list.Groups) - 1
		switch {
		case t.Resource.Group == "":
		case last < 0 || list.Groups[last].Name != t.Resource.Group:
			list.Groups = append(list.Groups, metav1.APIGroup{Name: t.Resource.Group, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv})
		case list.Groups[last].Versions[len(list.Groups[last].Versions)-1] != gv:
			list.Groups[last].Versions = append(list.Groups[last].Versions, gv)
		}
	}
	return list
}

func resources(types *store.Types, gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, t := range types.All() {
		if t.Resource.GroupVersion() != gv {
			continue
		}
		one := metav1.APIResource{Name: t.Resource.Resource, Namespaced: t.Namespaced, Kind: t.Kind.Kind, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}}
		list.APIResources = append(list.APIResources, one)
		if t.Status {
			one.Name, one.Verbs = one.Name+"/status", []string{"get", "update", "patch"}
			list.APIResources = append(list.APIResources, one)
		}
	}
	return list
}
