package sim

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// carry carries out one action.
func (s *shift) carry(seen exchange.Seen, a core.Action) error {
	if err := s.ended(); err != nil {
		return err
	}
	p := s.o.e.pods
	switch a := a.(type) {
	case core.StartPlugins:
		return p.startPlugins(a.Node, a.Plugins)
	case core.StopPlugins:
		return p.stopPlugins(a.Node, a.Plugins)
	case core.Report:
		return p.report(a.Node, a.Plugins)
	case core.RollOut:
		file, err := seen.File(a.Revision)
		if err != nil {
			return err
		}
		return p.rollOut(a.Node, a.Revision, file)
	case core.RunPreflight:
		s.check(a.Plugin)
		return nil
	case core.Migrate:
		s.migrate(a.Attempt)
		return nil
	}
	return s.write(seen, a)
}

// write carries out an action that changes objects.
func (s *shift) write(seen exchange.Seen, a core.Action) error {
	clerk := exchange.Clerk{Component: s.o.w.component(), Encrypted: []string{s.o.w.encrypts.name}, Random: bytesOf{s.k.Rand()}}
	requests, err := clerk.Requests(seen, a, s.k.Now())
	if err != nil {
		return err
	}
	for _, r := range requests {
		if err := s.send(r); err != nil {
			return err
		}
	}
	if _, made := a.(core.CreateKey); made {
		s.preflight.Forget() // it was for this key
	}
	return nil
}

func (s *shift) send(r exchange.Request) error {
	if err := s.ended(); err != nil {
		return err
	}
	n := s.o.way()
	switch {
	case n == nil:
		return errRefused
	case r.Secret != nil:
		err := s.o.e.within(exchange.RequestTimeout, func(done func(error)) { n.kube().manage(r.Verb, r.Secret, done) })
		s.notify() // it is told of what was written
		return err
	}
	verb := map[exchange.Verb]string{exchange.Create: verbCreate, exchange.Update: verbUpdate, exchange.Delete: verbDelete}[r.Verb]
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.ConfigMap)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: body}
	u.SetGroupVersionKind(configMaps().GroupVersion().WithKind("ConfigMap"))
	err = s.ask(n, request{verb: verb, key: objects.Key{Resource: configMaps(), Namespace: u.GetNamespace(), Name: u.GetName()}, manager: exchange.FieldManager, body: encode(u)})
	if r.Verb == exchange.Delete && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ask makes a request, and says what became of it in a client's words.
func (s *shift) ask(n *node, r request) error {
	r.user, r.agent = operatorUser, operatorUser
	rep := s.o.e.ask(n, r)
	if rep.err != nil || rep.code < http.StatusBadRequest {
		return rep.err
	}
	verb := map[string]string{verbCreate: http.MethodPost, verbUpdate: http.MethodPut}[r.verb]
	return apierrors.NewGenericServerResponse(rep.code, verb, r.key.Resource.GroupResource(), r.key.Name, rep.text, 0, false)
}

// say writes the conditions, all of them, and the state of the pre-flight check, if something has changed.
func (s *shift) say(w exchange.WantedStatus) error {
	kind := s.o.w.operator.core.Kind
	cr, then, err := s.published.Next(kind, w, s.k.Now())
	if err != nil || cr == nil {
		return err
	}
	n := s.o.way()
	if n == nil {
		return errRefused
	}
	body := encode(newObject("operator.openshift.io/v1", kind, exchange.Object, cr))
	err = s.ask(n, request{verb: verbPatch, key: s.o.w.crKey(), subresource: "status", manager: exchange.FieldManager, force: true, contentType: audit.ContentTypeApply, body: body})
	if err != nil {
		return fmt.Errorf("apply conditions to %s: %w", exchange.Object, err)
	}
	s.published = then
	return nil
}

// writeConfig says that the operator cannot read its own objects, if that is what is wrong.
func (s *shift) writeConfig(err error) error {
	if words, ok := exchange.Unreadable(err); ok {
		return s.say(words)
	}
	return err
}
