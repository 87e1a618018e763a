package kernel

import "time"

// event is something that happens at an instant. f is nil when it has happened or was stopped.
type event struct {
	at  time.Time
	due int64 // nanoseconds since the beginning: what is compared
	seq uint64
	f   func()
}

func (e *event) before(o *event) bool {
	return e.due < o.due || e.due == o.due && e.seq < o.seq
}

// queue is a binary heap of events.
type queue struct{ heap []*event }

func (q *queue) peek() *event {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0]
}

func (q *queue) push(e *event) {
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.heap[i].before(q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *queue) pop() {
	last := len(q.heap) - 1
	q.heap[0], q.heap[last] = q.heap[last], nil
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.heap[child].before(q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
