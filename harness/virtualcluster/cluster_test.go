package virtualcluster_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/virtualcluster"
)

const widgets = `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations: [{rule: "self.size >= oldSelf.size", message: a widget does not shrink}]
            properties: {size: {type: integer, minimum: 1}, color: {type: string, default: red}, share: {type: number}}
          status: {type: object, properties: {ready: {type: boolean}}}
`

func crd(t *testing.T, text string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	out := &apiextensions.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func clientConfig(t *testing.T, c *virtualcluster.Cluster, server string) *rest.Config {
	t.Helper()
	config, err := c.Host("client").Config(server)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func configMaps(t *testing.T, c *virtualcluster.Cluster, server string) corev1client.ConfigMapInterface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(clientConfig(t, c, server)).CoreV1().ConfigMaps("default")
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Objects of a CRD are validated, completed and have a status; what has no schema is stored as it is sent. A RESTMapper finds both.
func TestResources(t *testing.T) {
	certificates := virtualcluster.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}, Plural: "certificatesigningrequests", ClusterScoped: true, Status: true}
	o := virtualcluster.Options{CRDs: []*apiextensions.CustomResourceDefinition{crd(t, widgets)}, Resources: []virtualcluster.Resource{certificates}}
	virtualcluster.Run(t, o, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		g := NewWithT(t)
		config := clientConfig(t, c, "cp-1")
		mapper, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
		g.Expect(err).NotTo(HaveOccurred())
		mapping, err := restmapper.NewDiscoveryRESTMapper(mapper).RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
		g.Expect(err).NotTo(HaveOccurred())
		dynamicClient := dynamic.NewForConfigOrDie(config)
		client := dynamicClient.Resource(mapping.Resource).Namespace("default")
		widget := func(size any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"size": size, "share": 0.5, "unknown": 1},
				"status": map[string]any{"ready": true}}}
		}
		for _, bad := range []any{int64(0), "much"} {
			_, err = client.Create(ctx, widget(bad), metav1.CreateOptions{})
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v: %v", bad, err)
		}
		made, err := client.Create(ctx, widget(int64(1)), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.Object).To(And(HaveKeyWithValue("spec", map[string]any{"size": int64(1), "share": 0.5, "color": "red"}), Not(HaveKey("status"))))
		made.Object["status"] = map[string]any{"ready": true}
		made, err = client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.Object).To(HaveKeyWithValue("status", map[string]any{"ready": true}))
		g.Expect(made.GetGeneration()).To(Equal(int64(1)))
		g.Expect(unstructured.SetNestedField(made.Object, int64(2), "spec", "size")).To(Succeed())
		made, err = client.Update(ctx, made, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(unstructured.SetNestedField(made.Object, int64(1), "spec", "size")).To(Succeed())
		_, err = client.Update(ctx, made, metav1.UpdateOptions{})
		g.Expect(err).To(MatchError(ContainSubstring("a widget does not shrink")))

		documentation, err := os.ReadFile("doc.go")
		g.Expect(err).NotTo(HaveOccurred())
		_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerGroupsAndResources()
		g.Expect(err).NotTo(HaveOccurred())
		for _, list := range lists {
			for _, r := range list.APIResources {
				if list.GroupVersion != "example.com/v1" && list.GroupVersion != "certificates.k8s.io/v1" && !strings.Contains(r.Name, "/") {
					g.Expect(string(documentation)).To(ContainSubstring(r.Name))
				}
			}
		}

		deployments := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments("default")
		_, err = deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		d, err := deployments.Patch(ctx, "d", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Spec.Replicas).To(HaveValue(Equal(int32(2))))
		g.Expect(c.Stored(appsv1.SchemeGroupVersion.WithResource("deployments"), "default", "d")).To(ContainSubstring(`"replicas":2`))
		request := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "csr"}}}
		request.SetGroupVersionKind(certificates.GroupVersionKind)
		_, err = dynamicClient.Resource(certificates.GroupVersion().WithResource(certificates.Plural)).Create(ctx, request, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})
}

// A user without roles may do nothing, and a token of a service account is refused with the reason.
func TestUsers(t *testing.T) {
	virtualcluster.Run(t, virtualcluster.Options{}, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		config, err := c.Host("client").ConfigAs("cp-1", "jane", "developers")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
			t.Error(err)
		}
		client := kubernetes.NewForConfigOrDie(clientConfig(t, c, "cp-1")).CoreV1().ServiceAccounts("default")
		if _, err := client.CreateToken(ctx, "account", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "use a client certificate") {
			t.Error(err)
		}
	})
}

// faultEffects are what a client in front of two API servers sees of each fault. API servers are asked by their names, and both by the load balancer.
func faultEffects() map[string]struct {
	fault virtualcluster.Fault
	want  string // part of the error of a write to cp-1; empty: it succeeds
	all   string // the same through the load balancer
} {
	return map[string]struct {
		fault     virtualcluster.Fault
		want, all string
	}{
		"killed":   {virtualcluster.APIServerDown{Name: "cp-1"}, "connection refused", ""},
		"stopped":  {virtualcluster.APIServerDown{Name: "cp-1", Graceful: true}, "connection refused", ""},
		"host":     {virtualcluster.HostDown{Name: "client"}, "network is down", "network is down"},
		"frozen":   {virtualcluster.HostFrozen{Name: "cp-1"}, "deadline exceeded", ""},
		"cut":      {virtualcluster.LinkFault{From: "client", To: "cp-1", Link: network.Link{Cut: true}}, "deadline exceeded", ""},
		"refused":  {virtualcluster.LinkFault{From: virtualcluster.LoadBalancer, To: "cp-1", Link: network.Link{Refused: true}}, "", ""},
		"slow":     {virtualcluster.LinkFault{From: "client", To: "cp-1", Link: network.Link{Delay: 10 * time.Second}}, "deadline exceeded", ""},
		"storage":  {virtualcluster.StorageDown{APIServer: "cp-1"}, "deadline exceeded", ""},
		"refusal":  {virtualcluster.Refusal{APIServer: "cp-1", Verb: "create", Code: http.StatusServiceUnavailable}, "currently unable to handle the request", ""},
		"no match": {virtualcluster.Refusal{APIServer: "cp-1", User: "other", Code: http.StatusServiceUnavailable}, "", ""},
		"reset":    {virtualcluster.ConnectionsReset{A: "client", B: "cp-1"}, "", ""},
		"watches":  {virtualcluster.WatchesDelayed{APIServer: "cp-1", By: time.Second}, "", ""},
	}
}

func TestFaults(t *testing.T) {
	for name, f := range faultEffects() {
		t.Run(name, func(t *testing.T) {
			virtualcluster.Run(t, virtualcluster.Options{Seed: 1, APIServers: []string{"cp-1", "cp-2"}}, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
				g := NewWithT(t)
				write := func(server string) error {
					ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
					defer cancel()
					o := configMap("")
					o.GenerateName = "a-"
					_, err := configMaps(t, c, server).Create(ctx, o, metav1.CreateOptions{}) // with a connection of its own
					return err
				}
				matches := func(part string) OmegaMatcher {
					if part == "" {
						return Succeed()
					}
					return MatchError(ContainSubstring(part))
				}
				c.Host("client")
				g.Expect(c.Inject(ctx, f.fault)).To(Succeed())
				g.Expect(write("cp-1")).To(matches(f.want))
				if name != "refusal" && name != "storage" && name != "frozen" { // half of the connections meet them
					g.Expect(write(virtualcluster.LoadBalancer)).To(matches(f.all))
				}
				g.Expect(c.Heal(ctx)).To(Succeed())
				g.Expect(c.Faults()).To(BeEmpty())
				g.Expect(write("cp-1")).To(Succeed())
			})
		})
	}
}

// A watch shows changes late while it is delayed, and ends with WatchesEnded.
func TestWatches(t *testing.T) {
	virtualcluster.Run(t, virtualcluster.Options{}, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		g := NewWithT(t)
		client := configMaps(t, c, "cp-1")
		w, err := client.Watch(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Inject(ctx, virtualcluster.WatchesDelayed{APIServer: "cp-1", By: time.Minute})).To(Succeed())
		began := time.Now()
		_, err = client.Create(ctx, configMap("a"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		<-w.ResultChan()
		g.Expect(time.Since(began)).To(BeNumerically("~", time.Minute, time.Second))
		g.Expect(c.Inject(ctx, virtualcluster.WatchesEnded{APIServer: "cp-1"})).To(Succeed())
		g.Eventually(w.ResultChan()).Should(BeClosed())
	})
}

// What is wrong is one error, which says what was expected.
func TestBadInput(t *testing.T) {
	several, none := crd(t, widgets), crd(t, widgets)
	several.Spec.Versions = append(several.Spec.Versions, several.Spec.Versions[0])
	none.Spec.Versions[0].Schema = nil
	for want, o := range map[string]virtualcluster.Options{
		`API server "cp-1": expected a name that no other host has`: {APIServers: []string{"cp-1", "cp-1"}},
		`API server "": expected a name`:                            {APIServers: []string{""}},
		"CRD widgets.example.com: 2 served versions, expected one":  {CRDs: []*apiextensions.CustomResourceDefinition{several}},
		"CRD widgets.example.com: expected a schema of version v1":  {CRDs: []*apiextensions.CustomResourceDefinition{none}},
		"resource example.com/v1, Resource=widgets: expected once":  {CRDs: []*apiextensions.CustomResourceDefinition{crd(t, widgets), crd(t, widgets)}},
		"expected a version, a kind and a plural":                   {Resources: []virtualcluster.Resource{{Plural: "things"}}},
		"resource apps/v1, Resource=deployments: expected once":     {Resources: []virtualcluster.Resource{{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Plural: "deployments"}}},
		"resource /v1, Resource=secrets: expected once":             {Resources: []virtualcluster.Resource{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Plural: "secrets"}}},
	} {
		bubble.Test(t, 1, func(t *testing.T) {
			if _, err := virtualcluster.New(o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, expected %s", err, want)
			}
		})
	}
	virtualcluster.Run(t, virtualcluster.Options{}, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		g := NewWithT(t)
		unknown := virtualcluster.APIServerDown{Name: "cp-2"}
		for want, f := range map[string]virtualcluster.Fault{
			`inject virtualcluster.APIServerDown{Name:cp-2 Graceful:false}: API server "cp-2": expected one of cp-1`: unknown,
			`host "nobody": expected one of cp-1, load-balancer`:                                                     virtualcluster.HostFrozen{Name: "nobody"},
			`host "cp-1": expected one of the test's own`:                                                            virtualcluster.HostDown{Name: "cp-1"},
			"expected Cut, Refused or a Delay above 0":                                                               virtualcluster.LinkFault{From: "cp-1", To: "load-balancer"},
			"code 200: expected 400 to 599":                                                                          virtualcluster.Refusal{APIServer: "cp-1", Code: http.StatusOK},
			"delay of 0s: expected more than 0":                                                                      virtualcluster.WatchesDelayed{APIServer: "cp-1"},
		} {
			g.Expect(c.Inject(ctx, f)).To(MatchError(ContainSubstring(want)))
		}
		g.Expect(c.Release(ctx, unknown)).To(MatchError(ContainSubstring("it is not in force")))
		g.Expect(c.Inject(ctx, virtualcluster.APIServerDown{Name: "cp-1"})).To(Succeed())
		g.Expect(c.Inject(ctx, virtualcluster.APIServerDown{Name: "cp-1", Graceful: true})).To(MatchError(ContainSubstring("is in force")))
		g.Expect(c.Heal(ctx)).To(Succeed())
		_, err := c.Host("client").Config("cp-2")
		g.Expect(err).To(MatchError(ContainSubstring("expected one of cp-1")))
		g.Expect(c.SetEncryption(encrypting("/kms.sock"), "cp-2")).To(MatchError(ContainSubstring("expected one of cp-1")))
		e := encrypting("kms.sock")
		e.Resources[0].Providers[0].KMS.Endpoint = "tcp://kms"
		g.Expect(c.SetEncryption(e)).To(MatchError(ContainSubstring("unsupported scheme")))
	})
}

// Nothing is left of a cluster.
func TestNothingLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	controllerSurvives(t, 1)
	goleak.VerifyNone(t, before)
}
