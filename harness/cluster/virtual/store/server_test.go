package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
)

// The store gives the objects and errors of a real API server, after every operation of random histories.
func TestStoreEqualsAPIServer(t *testing.T) {
	client := realClient(t)
	types := allTypes(t)
	rapid.Check(t, func(r *rapid.T) {
		s := &server{ctx: t.Context(), client: client, sent: map[string]string{}, fields: map[Key][]metav1.ManagedFieldsEntry{}}
		if err := s.clear(); err != nil {
			r.Fatal(err)
		}
		p := newSubject(types)
		p.updaters, p.server = 4, s.hold // few: which are joined when there are many is a matter of their times
		if difference := history(r, p); difference != "" {
			r.Fatal(difference)
		}
	})
}

// realClient is of a real API server with the CRDs.
func realClient(t *testing.T) dynamic.Interface {
	t.Helper()
	list, err := crds.List(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assetstest.Dir(t), CRDInstallOptions: envtest.CRDInstallOptions{CRDs: list}}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// server makes operations to a real API server. Its resourceVersions and uids are others than the store's.
type server struct {
	ctx    context.Context
	client dynamic.Interface
	sent   map[string]string                   // what the server calls a resourceVersion or uid of the store
	fields map[Key][]metav1.ManagedFieldsEntry // with the server's times, as a client would have read them
}

func (s *server) clear() error {
	for _, r := range crResources {
		if err := s.client.Resource(r).Delete(s.ctx, "cluster", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// hold makes an operation to the server, and holds its answer against the store's.
func (s *server) hold(o operation, want *Version, wantErr error) string {
	got, err := s.make(o)
	if a, b := s.failure(wantErr), s.failure(err); a != b {
		return fmt.Sprintf("%s: errors differ:\nstore  %s\nserver %s", o.verb, a, b)
	}
	if err != nil || got == nil {
		return ""
	}
	s.fields[o.key] = got.GetManagedFields()
	mine := want.Object()
	for a, b := range map[string]string{mine.GetResourceVersion(): got.GetResourceVersion(), string(mine.GetUID()): string(got.GetUID())} {
		if known, ok := s.sent[a]; ok && known != b {
			return fmt.Sprintf("%s: what was %s on the server is now %s, and still %s in the store", o.verb, known, b, a)
		}
		s.sent[a] = b
	}
	if a, b := normal(mine), normal(got); a != b {
		return fmt.Sprintf("%s: objects differ:\nstore  %s\nserver %s", o.verb, a, b)
	}
	return ""
}

func (s *server) make(o operation) (*unstructured.Unstructured, error) {
	c := s.client.Resource(o.key.Resource)
	var subs []string
	if o.subresource != "" {
		subs = []string{o.subresource}
	}
	var body *unstructured.Unstructured
	if o.object != nil {
		body = o.object.DeepCopy()
		if v, ok := s.sent[body.GetResourceVersion()]; ok {
			body.SetResourceVersion(v)
		}
		if v, ok := s.sent[string(body.GetUID())]; ok {
			body.SetUID(types.UID(v))
		}
		if f := body.GetManagedFields(); len(f) > 0 && f[0].Manager != "" {
			body.SetManagedFields(s.fields[o.key])
		}
	}
	switch o.verb {
	case "create":
		return c.Create(s.ctx, body, metav1.CreateOptions{FieldManager: o.manager})
	case "apply":
		data, err := json.Marshal(body.Object)
		if err != nil {
			return nil, err
		}
		return c.Patch(s.ctx, o.key.Name, types.ApplyYAMLPatchType, data, metav1.PatchOptions{FieldManager: o.manager, Force: &o.force}, subs...)
	case "update":
		return c.Update(s.ctx, body, metav1.UpdateOptions{FieldManager: o.manager}, subs...)
	case "patch":
		return c.Patch(s.ctx, o.key.Name, types.JSONPatchType, o.patch, metav1.PatchOptions{FieldManager: o.manager}, subs...)
	}
	return nil, c.Delete(s.ctx, o.key.Name, metav1.DeleteOptions{})
}

// normal is an object without what must differ: versions, uids, and when something was.
func normal(o *unstructured.Unstructured) string {
	o = o.DeepCopy()
	fields := o.GetManagedFields()
	for i := range fields {
		if fields[i].Time != nil {
			fields[i].Time = &metav1.Time{Time: start}
		}
	}
	slices.SortFunc(fields, compareEntries)
	o.SetManagedFields(fields)
	o.SetResourceVersion("")
	o.SetUID("")
	o.SetCreationTimestamp(metav1.Time{})
	b, err := json.Marshal(o.Object)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// failure is an error as the client sees it. Which of several mistakes in a patch the server names, and in what order, is a
// matter of chance.
func (s *server) failure(err error) string {
	var e *apierrors.StatusError
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	text := e.ErrStatus.Message
	if strings.HasPrefix(text, badPatch) {
		text, _, _ = strings.Cut(text, "): ")
	}
	if d := e.ErrStatus.Details; d != nil && len(d.Causes) > 1 {
		causes := make([]string, len(d.Causes))
		for i, c := range d.Causes {
			causes[i] = fmt.Sprintf("%s %s: %s", c.Type, c.Field, c.Message)
		}
		slices.Sort(causes)
		text = strings.Join(causes, "\n")
	}
	return fmt.Sprintf("%d %s %s", e.ErrStatus.Code, e.ErrStatus.Reason, text)
}
