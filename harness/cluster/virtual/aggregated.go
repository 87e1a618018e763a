package virtual

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"time"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
)

// aggregated is what the servers of one kind of aggregated API servers share: its own part of etcd.
type aggregated struct {
	cluster.Stub
	objects *apiserver.Cluster
	proxies authenticator.Request // by certificates of kube-apiservers
}

func newAggregated(apiServer string, layer *aggregation) (*aggregated, error) {
	stub, err := cluster.StubOf(apiServer)
	if err != nil {
		return nil, err
	}
	of := stub.Encrypted()
	types, err := store.BuiltInTypes(store.Type{Resource: of.Resource, Kind: of.Resource.GroupVersion().WithKind(of.Kind), Namespaced: true, Unconditional: true})
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(layer.authority.Bundle())
	verify := func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}
	list := func(names ...string) headerrequest.StringSliceProvider { return headerrequest.StaticStringSlice(names) }
	return &aggregated{Stub: stub, objects: apiserver.NewCluster(types), proxies: headerrequest.NewDynamicVerifyOptionsSecure(
		x509request.VerifyOptionFunc(verify), list(frontProxy), list("X-Remote-User"), list("X-Remote-Uid"), list("X-Remote-Group"), list("X-Remote-Extra-"))}, nil
}

func (c *ControlPlane) AddAggregated(spec controlplane.AggregatedSpec) (local.Server, error) {
	s, err := c.addAggregated(spec)
	if err != nil {
		return nil, fmt.Errorf("add %s of %s: %w", spec.Kind, spec.Name, err)
	}
	return s, nil
}

// addAggregated adds one API server of an aggregated API. The first of a kind makes its group and, of all kinds, the aggregation layer.
func (c *ControlPlane) addAggregated(spec controlplane.AggregatedSpec) (*server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.layer == nil {
		layer, err := newAggregation()
		if err != nil {
			return nil, err
		}
		c.layer = layer
	}
	i := slices.IndexFunc(c.groups, func(a *aggregated) bool { return a.APIServer == spec.Kind })
	if i < 0 {
		a, err := newAggregated(spec.Kind, c.layer)
		if err != nil {
			return nil, err
		}
		i = len(c.groups)
		c.groups = append(c.groups, a)
	}
	s, err := newServer(c, spec.Name, c.groups[i])
	if err != nil {
		return nil, err
	}
	if s.kube, err = s.client(spec.Server); err != nil {
		return nil, err
	}
	c.aggregated = append(c.aggregated, s)
	return s, s.setEncryption(spec.Encryption)
}

// client is how an aggregated API server reaches a kube-apiserver. OpenShift gives its API servers the role cluster-admin.
func (s *server) client(url string) (authorizationclient.AuthorizationV1Interface, error) {
	config, err := s.cluster.identities.Authority.RESTConfig(s.aggregated.User(), []string{user.SystemPrivilegedGroup}, url)
	if err != nil {
		return nil, err
	}
	config.Dial = s.cluster.machine.network.Host(s.host).DialFunc
	config.Wrap(s.cluster.machine.network.Wrap(s.host))
	return authorizationclient.NewForConfig(config)
}

// kubeTimeout is how long an aggregated API server that starts waits for an answer of a kube-apiserver.
const kubeTimeout = 10 * time.Second

// askKube is an error where no kube-apiserver answers: a real server reads there whom it may believe, and ends without.
func (s *server) askKube(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kubeTimeout)
	defer cancel()
	if err := s.kube.RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return fmt.Errorf("ask a kube-apiserver for the authorities of clients: %w", err)
	}
	return nil
}

// aggregatedOptions are those of an aggregated API server. Clients authenticate as the users that a kube-apiserver names, or as with a kube-apiserver.
func (s *server) aggregatedOptions(o *apiserver.Options) {
	o.Name, o.Cluster, o.Registry = s.host, s.aggregated.objects, s.aggregated.Prefix()
	o.Authenticate = func(r *http.Request) (user.Info, error) {
		if answer, ok, err := s.aggregated.proxies.AuthenticateRequest(r); err == nil && ok {
			return answer.User, nil
		}
		return s.cluster.identities.Authenticate(r)
	}
	o.Authorize = s.authorize
}

// authorize asks a kube-apiserver whether a user may do something. A real server remembers the answer for 10 s.
func (s *server) authorize(q *apiserver.Request) error {
	if !q.IsResourceRequest || slices.Contains(q.User.GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: q.User.GetName(), Groups: q.User.GetGroups(), ResourceAttributes: &authorization.ResourceAttributes{
		Verb: q.Verb, Group: q.APIGroup, Version: q.APIVersion, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name}}}
	review, err := s.kube.SubjectAccessReviews().Create(q.HTTP.Context(), review, metav1.CreateOptions{})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !review.Status.Allowed {
		return q.Forbidden()
	}
	return nil
}

// identity is what the history calls an API server.
func (s *server) identity() history.Process {
	p := history.Process{Role: history.RoleAPIServer, Node: s.node}
	if s.aggregated != nil {
		p.APIServer = s.aggregated.APIServer
	}
	return p
}
