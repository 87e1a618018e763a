package operand

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/internal/poll"
	"github.com/kmsharness/kmsharness/operator/revision"
)

//go:embed migrations.crd.yaml
var migrationsCRD []byte

// Prepare makes what an operator finds in a cluster besides its CR: namespaces with a default service account, and the API of storage migrations.
func Prepare(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	for _, name := range []string{revision.Namespace, o.Namespace, o.OperatorNamespace} {
		if err := o.namespace(ctx, name); err != nil {
			return err
		}
		// Pods need one, and nobody else makes it where no controllers run.
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}}
		_, err := o.Client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
		if err := made(err, "service account", name, "default"); err != nil {
			return err
		}
	}
	if err := o.serveMigrations(ctx); err != nil || !o.Whole {
		return err
	}
	return o.prepareWhole(ctx)
}

func (o Options) namespace(ctx context.Context, name string) error {
	_, err := o.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return made(err, "namespace", "", name)
}

// made is the error of a request that creates an object. One that is there already is made.
func made(err error, kind, namespace, name string) error {
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create %s %s: %w", kind, path.Join(namespace, name), err)
}

// create creates an object, unless it is there.
func (o Options) create(ctx context.Context, r schema.GroupVersionResource, u *unstructured.Unstructured) error {
	_, err := o.Dynamic.Resource(r).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
	return made(err, u.GetKind(), u.GetNamespace(), u.GetName())
}

func crdResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// prepareTimeout bounds Prepare. An API server serves a new CRD after a second.
const prepareTimeout = 30 * time.Second

func (o Options) serveMigrations(ctx context.Context) error {
	var crd unstructured.Unstructured
	if err := yaml.Unmarshal(migrationsCRD, &crd.Object); err != nil {
		return fmt.Errorf("CRD of migrations: %w", err)
	}
	if err := o.create(ctx, crdResource(), &crd); err != nil {
		return err
	}
	return o.served(ctx, o.Migrations)
}

// served waits until the API of a new CRD is served.
func (o Options) served(ctx context.Context, r schema.GroupVersionResource) error {
	var last error
	err := poll.Until(ctx, pollEvery, func() (bool, error) {
		_, last = o.Dynamic.Resource(r).List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API of %s is not served: %w", r.GroupResource(), last)
	}
	return nil
}
