package live

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Lifetimes of tokens: one that outlives any run, as certificates do, and the shortest that API servers make.
const (
	longToken  = 24 * time.Hour
	shortToken = 10 * time.Minute
)

// accountNamespace is that of the reporters' service account.
func (sut *systemUnderTest) accountNamespace() string {
	if sut.legacy.used() {
		return contract.TokenNamespace
	}
	if sut.e.opts.Reporter.Identity == history.IdentityAdmin {
		return cluster.Administrators
	}
	return manifests.Namespace
}

// prepareAccount makes the pod of a node's reporter, which nothing runs, and fills the volume of its service account.
func (sut *systemUnderTest) prepareAccount(ctx context.Context, n *cluster.Node) error {
	if sut.legacy.used() { // a static pod, without a pod object of its own
		_, err := sut.writeToken(ctx, n, 0)
		return err
	}
	c, err := sut.e.Nodes.Admin()
	if err != nil {
		return err
	}
	if sut.e.opts.Reporter.Identity == history.IdentityAdmin {
		if err := makeAdministrators(ctx, c); err != nil {
			return err
		}
	}
	namespace, pod := sut.accountNamespace(), reporterPod(n.Name)
	pod.SetNamespace(namespace)
	if err := c.Ensure(ctx, cluster.PodObjects(), pod); err != nil {
		return err
	}
	_, err = sut.writeToken(ctx, n, 0)
	return err
}

// reporterPod is a pod on a node that no kubelet runs: its selector fits no node.
func reporterPod(node string) *unstructured.Unstructured {
	return cluster.NewObject("v1", "Pod", podName(node), cluster.Object{"spec": cluster.Object{
		"nodeName": node, "serviceAccountName": contract.ReporterServiceAccount,
		"nodeSelector": cluster.Object{"kmsharness.io/run-by": "harness"}, "restartPolicy": "Never",
		"containers": []any{cluster.Object{"name": "reporter", "image": "kms-health-reporter"}},
	}})
}

func podName(node string) string { return contract.ReporterServiceAccount + "-" + node }

// makeAdministrators makes the service account of reporters that may do everything.
func makeAdministrators(ctx context.Context, c *cluster.Client) error {
	rbac := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	account := cluster.NewObject("v1", "ServiceAccount", contract.ReporterServiceAccount, nil)
	account.SetNamespace(cluster.Administrators)
	binding := cluster.NewObject(rbac.GroupVersion().String(), "ClusterRoleBinding", cluster.Administrators, cluster.Object{
		"roleRef":  cluster.Object{"apiGroup": rbac.Group, "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{cluster.Object{"kind": "ServiceAccount", "name": contract.ReporterServiceAccount, "namespace": cluster.Administrators}},
	})
	for _, made := range []struct {
		of schema.GroupVersionResource
		o  *unstructured.Unstructured
	}{
		{cluster.NamespaceObjects(), cluster.NewObject("v1", "Namespace", cluster.Administrators, nil)},
		{cluster.AccountObjects(), account}, {rbac, binding},
	} {
		if err := c.Ensure(ctx, made.of, made.o); err != nil {
			return err
		}
	}
	return nil
}

// token asks for a token as a kubelet does for the projected volume of a pod: it is bound to the pod, and names the pod's node.
func (sut *systemUnderTest) token(ctx context.Context, n *cluster.Node, lifetime time.Duration) (token string, expires time.Time, err error) {
	c, err := sut.e.Nodes.Admin()
	if err != nil {
		return "", expires, err
	}
	namespace := sut.accountNamespace()
	fail := func(err error) (string, time.Time, error) {
		return "", time.Time{}, fmt.Errorf("token of the reporter of %s: %w", n.Name, err)
	}
	pod, err := c.Resource(cluster.PodObjects()).Namespace(namespace).Get(ctx, podName(n.Name), metav1.GetOptions{})
	if err != nil {
		return fail(err)
	}
	request := cluster.NewObject("authentication.k8s.io/v1", "TokenRequest", contract.ReporterServiceAccount, cluster.Object{"spec": cluster.Object{
		"expirationSeconds": int64(lifetime / time.Second),
		"boundObjectRef":    cluster.Object{"apiVersion": "v1", "kind": "Pod", "name": pod.GetName(), "uid": string(pod.GetUID())},
	}})
	made, err := c.Resource(cluster.AccountObjects()).Namespace(namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
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
func (sut *systemUnderTest) writeToken(ctx context.Context, n *cluster.Node, life time.Duration) (refused time.Time, err error) {
	at := n.ReporterPlace
	if sut.legacy.used() {
		if err := sut.legacy.renew(ctx, n); err != nil {
			return refused, err
		}
		return refused, sut.mountToken(n, sut.legacy.newest(n.Name))
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
func (sut *systemUnderTest) mountToken(n *cluster.Node, token string) error {
	at := n.ReporterPlace
	config, err := sut.e.controlPlane.Credentials.RESTConfig(contract.ReporterIdentity(n.Name), nil, at.Server)
	if err != nil {
		return err
	}
	return project(at.InCluster.Dir, at.Mode, map[string][]byte{"token": []byte(token), "ca.crt": config.CAData, "namespace": []byte(sut.accountNamespace())})
}

// configOf is that of a client with the identity of a node's reporter, of least privilege, straight to the node's API server.
func (sut *systemUnderTest) configOf(ctx context.Context, n *cluster.Node) (*rest.Config, error) {
	config, err := sut.e.controlPlane.Credentials.RESTConfig(contract.ReporterIdentity(n.Name), []string{contract.ReporterGroup}, n.URL)
	if err != nil || n.ReporterPlace.InCluster == nil || sut.accountNamespace() == cluster.Administrators {
		return config, err
	}
	config.CertData, config.KeyData = nil, nil
	if sut.legacy.used() { // a copy, as a thief has it
		config.BearerToken = sut.legacy.newest(n.Name)
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
func (sut *systemUnderTest) accountKubeconfig(n *cluster.Node) (string, error) {
	config := api.NewConfig()
	config.Clusters["in-cluster"] = &api.Cluster{Server: n.ReporterPlace.Server, CertificateAuthority: filepath.Join(cluster.ServiceAccountDir, "ca.crt")}
	config.AuthInfos["in-cluster"] = &api.AuthInfo{TokenFile: filepath.Join(cluster.ServiceAccountDir, "token")}
	config.Contexts["in-cluster"] = &api.Context{Cluster: "in-cluster", AuthInfo: "in-cluster"}
	config.CurrentContext = "in-cluster"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of the reporter of %s: %w", n.Name, err)
	}
	return n.ReporterPlace.Write("reporter-"+n.Name+".kubeconfig", text)
}
