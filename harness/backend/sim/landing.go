package sim

import (
	"slices"
	"time"
)

// land ends all flights, and all waiting for a change. It is called before anything changes that a way depends on: a link, a connection, or a process.
func (w *world) land() {
	flights := w.flights
	w.flights = nil
	for _, f := range flights {
		f.land()
	}
	w.main.unpark()
	for _, f := range w.further {
		f.unpark()
	}
}

func (w *world) unpark() {
	for _, a := range w.aggregators {
		a.unpark()
	}
}

// land goes on hop by hop, from the one that is under way.
func (f *flight) land() {
	f.timer.Stop()
	f.client.limited()
	passed := f.c.w.k.Now().Sub(f.begun)
	i := slices.IndexFunc(f.hops[:f.count], func(d time.Duration) bool { return d >= passed })
	switch {
	case f.carried:
		f.landBack(i)
	case i < f.ahead:
		f.landAhead(i)
	default:
		f.landServed(i)
	}
}

// landBack is an answer on its way back.
func (f *flight) landBack(i int) {
	rest := f.c.backwards()[i+1:]
	f.c.w.k.At(f.at(i), func() { f.c.pass(1, rest, f.answer) })
}

// landAhead is a request on its way to the API server.
func (f *flight) landAhead(i int) {
	s := f.c.server
	receive := f.c.atServer(func() { s.receive(&f.r, f.wanted, f.told) })
	f.c.w.k.At(f.at(i), func() { f.c.pass(0, f.c.links[i+1:], receive) })
}

// landServed is a request that the API server has.
func (f *flight) landServed(i int) {
	s, k, at := f.c.server, f.c.w.k, f.at(i)
	x := &service{s: s, r: &f.r, entry: f.noted(), wanted: f.wanted, answer: f.told}
	if i == f.ahead+hopServe {
		s.after(at.Sub(k.Now()), x.begin)
		return
	}
	a := s.w.etcd.accessing(s, f.at(f.ahead+hopServe).Add(f.r.limit()).Sub(k.Now()), x.stored)
	switch i - f.ahead {
	case hopStored:
		k.At(at, a.asked)
	case hopEtcd:
		s.w.etcd.work(a, at.Sub(k.Now()))
	case hopBack:
		s.at(at, a.returned)
	}
}

func (f *flight) wanted() bool { return !f.st.over }

// told brings the answer of the API server back.
func (f *flight) told(rep reply) {
	f.rep = rep
	f.c.toClient(f.answer)
}
