package live

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditv1 "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Client talks to one address under one identity, over connections of its own.
type Client struct {
	dynamic.Interface
	meta metadata.Interface
	url  string
	http *http.Client
}

// NewClient talks to a server; it does not connect yet. Close it after use.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return audited{next} })
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	d, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), h)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &Client{Interface: d, meta: m, url: config.Host, http: h}, nil
}

// audited sends the Audit-ID of a context.
type audited struct{ http.RoundTripper }

type auditIDKey struct{}

// withAuditID gives requests an Audit-ID that a client chose.
func withAuditID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, auditIDKey{}, id)
}

// RoundTrip implements http.RoundTripper.
func (a audited) RoundTrip(r *http.Request) (*http.Response, error) {
	if id, _ := r.Context().Value(auditIDKey{}).(string); id != "" {
		r = r.Clone(r.Context())
		r.Header.Set(auditv1.HeaderAuditID, id)
	}
	return a.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets idle connections be closed.
func (a audited) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }

// NewAdmin is a client of a user who may do everything.
func NewAdmin(c Credentials, server string) (*Client, error) {
	config, err := adminConfig(c, server)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // sample-apiserver calls its first version deprecated
	return NewClient(config)
}

func adminConfig(c Credentials, server string) (*rest.Config, error) {
	return c.RESTConfig("kmsharness-admin", []string{"system:masters"}, server)
}

// Get reads a page.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	return controlplane.Get(ctx, c.http, c.url+path)
}

func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// ServiceAccountDir is where a program in a pod finds its service account.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster is what a place has whose program runs as in a pod: the in-cluster configuration of client-go, with the service account of the pod.
type InCluster struct {
	// Dir is the volume with the service account, of this machine. The program sees it at ServiceAccountDir.
	Dir string
	// AccountKey is the key with which API servers sign the tokens of service accounts, in PEM.
	AccountKey func() ([]byte, error)
}

// Lifetimes of tokens: one that outlives any run, as certificates do, and the shortest that API servers make.
const (
	longToken  = 24 * time.Hour
	shortToken = 10 * time.Minute
)

// administrators is the namespace of the service account of reporters that are administrators: the admission policy is not about it.
const administrators = "kmsharness-administrators"

// accountNamespace is that of the reporters' service account.
func (sut *systemUnderTest) accountNamespace() string {
	if sut.legacyTokens() {
		return contract.TokenNamespace
	}
	if sut.e.opts.Reporter.Identity == history.IdentityAdmin {
		return administrators
	}
	return manifests.Namespace
}

// prepareAccount makes the pod of a node's reporter, which nothing runs, and fills the volume of its service account.
func (sut *systemUnderTest) prepareAccount(ctx context.Context, n *Node) error {
	if sut.legacyTokens() { // a static pod, without a pod object of its own
		_, err := sut.writeToken(ctx, n, 0)
		return err
	}
	c, err := sut.e.Nodes.Admin()
	if err != nil {
		return err
	}
	if sut.e.opts.Reporter.Identity == history.IdentityAdmin {
		if err := c.makeAdministrators(ctx); err != nil {
			return err
		}
	}
	namespace, pod := sut.accountNamespace(), reporterPod(n.Name)
	pod.SetNamespace(namespace)
	if err := c.ensure(ctx, podObjects(), pod); err != nil {
		return err
	}
	_, err = sut.writeToken(ctx, n, 0)
	return err
}

// reporterPod is a pod on a node that no kubelet runs: its selector fits no node.
func reporterPod(node string) *unstructured.Unstructured {
	return newObject("v1", "Pod", podName(node), object{"spec": object{
		"nodeName": node, "serviceAccountName": contract.ReporterServiceAccount,
		"nodeSelector": object{"kmsharness.io/run-by": "harness"}, "restartPolicy": "Never",
		"containers": []any{object{"name": "reporter", "image": "kms-health-reporter"}},
	}})
}

func podName(node string) string { return contract.ReporterServiceAccount + "-" + node }

// makeAdministrators makes the service account of reporters that may do everything.
func (c *Client) makeAdministrators(ctx context.Context) error {
	rbac := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	account := newObject("v1", "ServiceAccount", contract.ReporterServiceAccount, nil)
	account.SetNamespace(administrators)
	binding := newObject(rbac.GroupVersion().String(), "ClusterRoleBinding", administrators, object{
		"roleRef":  object{"apiGroup": rbac.Group, "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{object{"kind": "ServiceAccount", "name": contract.ReporterServiceAccount, "namespace": administrators}},
	})
	for _, made := range []struct {
		of schema.GroupVersionResource
		o  *unstructured.Unstructured
	}{
		{namespaceObjects(), newObject("v1", "Namespace", administrators, nil)},
		{accountObjects(), account}, {rbac, binding},
	} {
		if err := c.ensure(ctx, made.of, made.o); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates an object unless there is one of its name.
func (c *Client) ensure(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) error {
	_, err := c.Resource(r).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s/%s: %w", r.GroupResource(), o.GetName(), err)
	}
	return nil
}

// token asks for a token as a kubelet does for the projected volume of a pod: it is bound to the pod, and names the pod's node.
func (sut *systemUnderTest) token(ctx context.Context, n *Node, lifetime time.Duration) (token string, expires time.Time, err error) {
	c, err := sut.e.Nodes.Admin()
	if err != nil {
		return "", expires, err
	}
	namespace := sut.accountNamespace()
	fail := func(err error) (string, time.Time, error) {
		return "", time.Time{}, fmt.Errorf("token of the reporter of %s: %w", n.Name, err)
	}
	pod, err := c.Resource(podObjects()).Namespace(namespace).Get(ctx, podName(n.Name), metav1.GetOptions{})
	if err != nil {
		return fail(err)
	}
	request := newObject("authentication.k8s.io/v1", "TokenRequest", contract.ReporterServiceAccount, object{"spec": object{
		"expirationSeconds": int64(lifetime / time.Second),
		"boundObjectRef":    object{"apiVersion": "v1", "kind": "Pod", "name": pod.GetName(), "uid": string(pod.GetUID())},
	}})
	made, err := c.Resource(accountObjects()).Namespace(namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return fail(err)
	}
	token, _, _ = unstructured.NestedString(made.Object, "status", "token")
	text, _, _ := unstructured.NestedString(made.Object, "status", "expirationTimestamp")
	if expires, err = time.Parse(time.RFC3339, text); err != nil {
		return fail(err)
	}
	return token, expires, nil
}

// writeToken replaces the token of a node's reporter by one that API servers accept for the rest of life; 0: for longer than any run. refused is from when
// on they may refuse it.
func (sut *systemUnderTest) writeToken(ctx context.Context, n *Node, life time.Duration) (refused time.Time, err error) {
	at := n.ReporterPlace
	if sut.legacyTokens() {
		if err := sut.newLegacyToken(ctx, n); err != nil {
			return refused, err
		}
		return refused, sut.mountToken(n, n.lastLegacyToken())
	}
	lifetime := longToken
	if life > 0 {
		lifetime = shortToken
	}
	token, expires, err := sut.token(ctx, n, lifetime)
	if err != nil {
		return refused, err
	}
	refused = expires.Add(controlplane.TokenLeeway)
	if life > 0 {
		earlier := time.Until(refused.Add(-life)).Truncate(time.Second)
		refused = refused.Add(-earlier)
		key, err := at.InCluster.AccountKey()
		if err != nil {
			return refused, fmt.Errorf("key of service accounts: %w", err)
		}
		if token, err = controlplane.Reissue(key, token, earlier); err != nil {
			return refused, err
		}
	}
	return refused, sut.mountToken(n, token)
}

// mountToken fills the volume of a reporter's service account.
func (sut *systemUnderTest) mountToken(n *Node, token string) error {
	at := n.ReporterPlace
	config, err := sut.e.controlPlane.Credentials.RESTConfig(contract.ReporterIdentity(n.Name), nil, at.Server)
	if err != nil {
		return err
	}
	return project(at.InCluster.Dir, at.Mode, map[string][]byte{"token": []byte(token), "ca.crt": config.CAData, "namespace": []byte(sut.accountNamespace())})
}

// configOf is that of a client with the identity of a node's reporter, of least privilege, straight to the node's API server.
func (sut *systemUnderTest) configOf(ctx context.Context, n *Node) (*rest.Config, error) {
	config, err := sut.e.controlPlane.Credentials.RESTConfig(contract.ReporterIdentity(n.Name), []string{contract.ReporterGroup}, n.URL)
	if err != nil || n.ReporterPlace.InCluster == nil || sut.accountNamespace() == administrators {
		return config, err
	}
	config.CertData, config.KeyData = nil, nil
	if sut.legacyTokens() { // a copy, as a thief has it
		config.BearerToken = n.lastLegacyToken()
		return config, nil
	}
	config.BearerToken, _, err = sut.token(ctx, n, shortToken)
	return config, err
}

// project replaces the files of a volume all at once, as a kubelet does: each is a link into ..data, which is a link to the folder with the newest files. The
// mode is that of the files; 0 is 0600. Who may read them may also list their folder.
func project(dir string, mode fs.FileMode, files map[string][]byte) error {
	fail := func(err error) error { return fmt.Errorf("volume of a service account: %w", err) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	data := filepath.Join(dir, "..data")
	old, _ := os.Readlink(data) // there is none before the first time
	folder, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return fail(err)
	}
	mode = cmp.Or(mode, 0o600)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, mode); err != nil {
			return fail(err)
		}
	}
	if err := os.Chmod(folder, mode|(mode&0o444)>>2); err != nil {
		return fail(err)
	}
	next := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(filepath.Base(folder), next); err != nil {
		return fail(err)
	}
	if err := os.Rename(next, data); err != nil {
		return fail(err)
	}
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			return fail(err)
		}
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return fail(err)
		}
	}
	return nil
}

// accountKubeconfig is for a reporter that is given a kubeconfig and no {connectivity}: the API server and the files of the in-cluster configuration.
func (sut *systemUnderTest) accountKubeconfig(n *Node) (string, error) {
	config := api.NewConfig()
	config.Clusters["in-cluster"] = &api.Cluster{Server: n.ReporterPlace.Server, CertificateAuthority: filepath.Join(ServiceAccountDir, "ca.crt")}
	config.AuthInfos["in-cluster"] = &api.AuthInfo{TokenFile: filepath.Join(ServiceAccountDir, "token")}
	config.Contexts["in-cluster"] = &api.Context{Cluster: "in-cluster", AuthInfo: "in-cluster"}
	config.CurrentContext = "in-cluster"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of the reporter of %s: %w", n.Name, err)
	}
	return n.ReporterPlace.write("reporter-"+n.Name+".kubeconfig", text)
}
