package virtualcluster_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/kmsharness/kmsharness/harness/virtualcluster"
)

// runController labels every ConfigMap of the namespace default with the number of its keys, until ctx ends. It is an ordinary controller.
func runController(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	configMaps := factory.Core().V1().ConfigMaps()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(o any) { queue.Add(o.(*corev1.ConfigMap).Name) }
	if _, err := configMaps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, o any) { enqueue(o) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer context.AfterFunc(ctx, queue.ShutDown)()
	for {
		name, over := queue.Get()
		if over {
			return nil
		}
		if o, err := configMaps.Lister().ConfigMaps("default").Get(name); err == nil && o.Labels["keys"] != strconv.Itoa(len(o.Data)) {
			o = o.DeepCopy()
			metav1.SetMetaDataLabel(&o.ObjectMeta, "keys", strconv.Itoa(len(o.Data)))
			if _, err := client.CoreV1().ConfigMaps("default").Update(ctx, o, metav1.UpdateOptions{}); err != nil {
				queue.AddRateLimited(name)
			} else {
				queue.Forget(name)
			}
		}
		queue.Done(name)
	}
}

// The controller is tested through the death of its API server, and through watches that end. history is all that the API server saw.
func controllerSurvives(t *testing.T, seed uint64) (history string) {
	var log bytes.Buffer
	o := virtualcluster.Options{Seed: seed, Audit: func(string) io.Writer { return &log }}
	virtualcluster.Run(t, o, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		g := NewWithT(t)
		config, err := c.Host("controller").Config("cp-1")
		g.Expect(err).NotTo(HaveOccurred())
		go func() { _ = runController(ctx, config) }() // it ends with ctx
		time.Sleep(time.Second)                        // until it watches
		config, err = c.Host("user").Config("cp-1")
		g.Expect(err).NotTo(HaveOccurred())
		user := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		create := func(name string) {
			_, err := user.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "1", "b": "2"}}, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		}
		label := func(name string) func() string {
			return func() string {
				o, err := user.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				return o.Labels["keys"]
			}
		}
		create("first")
		g.Eventually(label("first")).WithTimeout(5 * time.Second).Should(Equal("2"))

		g.Expect(c.Inject(ctx, virtualcluster.APIServerDown{Name: "cp-1"})).To(Succeed())
		g.Expect(label("first")()).To(ContainSubstring("connection refused"))
		time.Sleep(5 * time.Minute) // takes no real time
		g.Expect(c.Heal(ctx)).To(Succeed())
		create("second")
		g.Eventually(label("second")).WithTimeout(time.Minute).WithPolling(time.Second).Should(Equal("2"))

		g.Expect(c.Inject(ctx, virtualcluster.WatchesEnded{APIServer: "cp-1", Expired: true})).To(Succeed())
		create("third")
		g.Eventually(label("third")).WithTimeout(time.Minute).WithPolling(time.Second).Should(Equal("2"))
		fmt.Fprintln(&log, "ended at", time.Now())
	})
	return log.String()
}

func TestController(t *testing.T) { controllerSurvives(t, 1) }

// The same seed is the same history, with nanoseconds.
func TestSameSeedSameHistory(t *testing.T) {
	first := controllerSurvives(t, 1)
	for range 2 {
		if again := controllerSurvives(t, 1); again != first {
			t.Errorf("two runs of a seed differ:\n%s\n%s", first, again)
		}
	}
	if other := controllerSurvives(t, 2); other == first {
		t.Error("two seeds have the same history")
	}
	t.Logf("%d lines, sha256:%x", strings.Count(first, "\n"), sha256.Sum256([]byte(first)))
}
