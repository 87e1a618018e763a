package kernel

// event is something that happens at an instant. f is nil when it has happened or was stopped.
type event struct {
	due         int64 // nanoseconds since the beginning
	seq         uint64
	f           func()
	scope       Scope // nil: f happens in any case
	incarnation int
}

func (e *event) happen() {
	f, scope := e.f, e.scope
	e.f, e.scope = nil, nil
	if scope == nil {
		f()
		return
	}
	scope.Enter(e.incarnation, f)
}

// entry is an event in the queue, with its own copy of what is compared: following a pointer for each comparison costs more.
type entry struct {
	due int64
	seq uint64
	e   *event
}

func (x entry) before(o entry) bool {
	return x.due < o.due || x.due == o.due && x.seq < o.seq
}

// queue is a heap of events, of four branches: as deep as half of a binary one.
type queue struct{ heap []entry }

const branches = 4

func (q *queue) peek() *event {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0].e
}

func (q *queue) push(e *event) {
	x := entry{e.due, e.seq, e}
	q.heap = append(q.heap, x)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / branches
		if !x.before(q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = x
}

func (q *queue) pop() {
	last := len(q.heap) - 1
	x := q.heap[last]
	q.heap[last] = entry{}
	q.heap = q.heap[:last]
	if last > 0 {
		q.sink(x)
	}
}

// sink puts x in the place of the first.
func (q *queue) sink(x entry) {
	heap := q.heap
	i := 0
	for {
		first := branches*i + 1
		if first >= len(heap) {
			break
		}
		least := first
		for child := first + 1; child < min(first+branches, len(heap)); child++ {
			if heap[child].before(heap[least]) {
				least = child
			}
		}
		if !heap[least].before(x) {
			break
		}
		heap[i] = heap[least]
		i = least
	}
	heap[i] = x
}
