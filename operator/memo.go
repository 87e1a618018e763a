package operator

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// memo keeps what was read of objects, until they change. An operator looks at all of them whenever one changes.
type memo[T any] struct{ of map[string]read[T] }

type read[T any] struct {
	version string
	is      T
}

// memoSize is more than there are objects at a time.
const memoSize = 512

// get is what is read of an object.
func (m *memo[T]) get(o metav1.Object, read func() (T, error)) (T, error) {
	name := o.GetNamespace() + "/" + o.GetName()
	if has, there := m.of[name]; there && has.version == o.GetResourceVersion() {
		return has.is, nil
	}
	is, err := read()
	if err == nil {
		m.put(name, o.GetResourceVersion(), is)
	}
	return is, err
}

func (m *memo[T]) put(name, version string, is T) {
	if m.of == nil || len(m.of) >= memoSize { // names of what is gone add up
		m.of = map[string]read[T]{}
	}
	m.of[name] = read[T]{version, is}
}
