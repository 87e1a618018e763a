package history

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// encoder makes lines of events, the same that json.Marshal makes. Payloads of which a history has most are written by hand, in
// the order of their fields: with reflection, a swarm of seeds spends more time on this than on what it simulates.
type encoder struct {
	b      []byte
	owners map[string][]string // written last
	text   []byte
	at     int64 // a second, which is written in began
	began  []byte
}

// line is an event and a line feed; it is good until the next one.
func (w *encoder) line(e *Event) ([]byte, error) {
	w.b = w.b[:0]
	err := w.event(e)
	w.b = append(w.b, '\n')
	return w.b, err
}

func (w *encoder) event(e *Event) error {
	if !byHand(e) {
		return w.any(e)
	}
	w.raw(`{"seq":`).int(e.Seq)
	if err := w.raw(`,"at":`).time(e.At); err != nil {
		return err
	}
	w.raw(`,"kind":`).string(string(e.Kind)).raw(`,"source":`).string(e.Source).optional(`,"apiServer":`, e.APIServer)
	err := w.payload(e)
	w.raw("}")
	return err
}

// byHand says whether an event has exactly one payload, and one of those that payload knows.
func byHand(e *Event) bool {
	hand := 0
	for _, there := range [...]bool{e.Call != nil, e.Request != nil, e.Object != nil, e.Envelope != nil, e.Metrics != nil, e.Process != nil, e.Data != nil, e.Action != nil} {
		if there {
			hand++
		}
	}
	return hand == 1 && e.Run == nil && e.Phase == nil && e.Expectation == nil && e.Expected == nil &&
		e.Container == nil && e.Link == nil && e.Clock == nil && e.Refusal == nil && e.Watches == nil && e.Stall == nil && e.Encryption == nil && e.Census == nil && e.Decision == nil && e.End == nil
}

func (w *encoder) payload(e *Event) error {
	switch {
	case e.Call != nil:
		return w.raw(`,"call":`).call(e.Call)
	case e.Request != nil:
		return w.raw(`,"request":`).request(e.Request)
	case e.Object != nil:
		return w.raw(`,"object":`).object(e.Object)
	case e.Envelope != nil:
		w.raw(`,"envelope":`).envelope(e.Envelope)
	case e.Metrics != nil:
		w.raw(`,"metrics":`).metrics(e.Metrics)
	case e.Process != nil:
		w.raw(`,"process":`).process(e.Process)
	case e.Data != nil:
		w.raw(`,"data":`).data(e.Data)
	case e.Action != nil:
		return w.raw(`,"action":`).action(e.Action)
	}
	return nil
}

// any encodes what is rare.
func (w *encoder) any(v any) error {
	text, err := json.Marshal(v)
	w.b = append(w.b, text...)
	return err
}

func (w *encoder) raw(s string) *encoder {
	w.b = append(w.b, s...)
	return w
}

func (w *encoder) int(n int64) *encoder {
	w.b = strconv.AppendInt(w.b, n, 10)
	return w
}

// ownersOf writes the owners of an object, which hardly ever change.
func (w *encoder) ownersOf(owners map[string][]string) {
	if len(owners) != len(w.owners) || reflect.ValueOf(owners).UnsafePointer() != reflect.ValueOf(w.owners).UnsafePointer() {
		from := len(w.b)
		for i, key := range slices.Sorted(maps.Keys(owners)) {
			w.raw(separator(i, "{")).string(key).raw(":").list(owners[key])
		}
		w.raw("}")
		w.owners, w.text = owners, append(w.text[:0], w.b[from:]...)
		return
	}
	w.b = append(w.b, w.text...)
}

func (w *encoder) list(all []string) *encoder {
	if all == nil {
		return w.raw("null")
	}
	w.raw("[")
	for i, s := range all {
		w.raw(separator(i, "")).string(s)
	}
	return w.raw("]")
}

func separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}
