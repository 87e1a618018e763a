package check

import (
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	plainly "github.com/kmsharness/kmsharness/contract/plain"
)

// Most messages and bodies are written plainly, and are read here. What is not goes to the library.

func plainWires(message string) (items []wire, ok bool) {
	r := plainly.Of(message)
	r.Items(func() {
		var w wire
		r.Fields(func(name string) {
			switch name {
			case "keyID":
				w.KeyID = r.Text()
			case "kekID":
				w.KEKID = r.Text()
			case "status":
				w.Status = r.Text()
			case "lastChecked":
				w.LastChecked = r.Text()
			case "detail":
				w.Detail = r.Text()
			default:
				r.Fail()
			}
		})
		items = append(items, w)
	})
	return items, r.Whole()
}

// plainBody is a body that holds conditions or typed reports, and nothing else.
func plainBody(text string) (b body, ok bool) {
	r := plainly.Of(text)
	b.ok = true
	once, lists := onceEach{}, 0
	r.Fields(func(name string) {
		switch once.first(r, name); name {
		case "apiVersion", "kind":
			r.Text()
		case "metadata":
			r.Fields(func(string) { r.Text() })
		case "status":
			b.plainStatus(r, &lists)
		default:
			r.Fail()
		}
	})
	return b, r.Whole() && lists <= 1 // nobody writes two
}

func (b *body) plainStatus(r *plainly.Reader, lists *int) {
	once := onceEach{}
	r.Fields(func(name string) {
		switch once.first(r, name); name {
		case "conditions":
			*lists++
			r.Items(func() { b.conditions = append(b.conditions, plainCondition(r)) })
		case "healthReports":
			*lists++
			r.Items(func() { b.typed = append(b.typed, plainReport(r)) })
		case "encryptionStatus", "oauthAPIServer":
			b.plainStatus(r, lists)
		default:
			r.Fail()
		}
	})
}

func plainCondition(r *plainly.Reader) (c wireCondition) {
	r.Fields(func(name string) {
		switch text := r.Text(); name {
		case "type":
			c.Type = text
		case "message":
			c.Message = text
		case "status", "reason", "lastTransitionTime":
		default:
			r.Fail()
		}
	})
	return c
}

func plainReport(r *plainly.Reader) (t contract.TypedReport) {
	r.Fields(func(name string) {
		switch text := r.Text(); name {
		case "nodeName":
			t.NodeName = text
		case "keyID":
			t.KeyID = text
		case "status":
			t.Status = text
		case "lastCheckedTime":
			t.LastCheckedTime = text
		case "remoteKeyID":
			t.RemoteKeyID = text
		case "detail":
			t.Detail = text
		default:
			r.Fail()
		}
	})
	return t
}

// onceEach are the names of few fields.
type onceEach struct {
	names [4]string
	n     int
}

// first fails a field that stands twice: which one counts is for the library to say.
func (o *onceEach) first(r *plainly.Reader, name string) {
	for _, known := range o.names[:o.n] {
		if known == name {
			r.Fail()
			return
		}
	}
	if o.n == len(o.names) {
		r.Fail()
		return
	}
	o.names[o.n] = name
	o.n++
}

// written is an entry of a message, and which of the optional fields it has.
type written struct {
	wire
	hasKEK, hasDetail bool
}

// plainMessage is a message in which nothing is wrong but, perhaps, what its texts say: minified, an array of entries with their fields
// in order, and no keyID twice.
func plainMessage(message string) (items []written, ok bool) {
	r := plainly.Of(message)
	r.Items(func() {
		w, last, required := written{}, 0, 0
		r.Fields(func(name string) {
			text, place := r.Text(), 0
			switch name {
			case "keyID":
				w.KeyID, place = text, 1
				required++
			case "kekID":
				w.KEKID, w.hasKEK, place = text, true, 2
			case "status":
				w.Status, place = text, 3
				required++
			case "lastChecked":
				w.LastChecked, place = text, 4
				required++
			case "detail":
				w.Detail, w.hasDetail, place = text, true, 5
			}
			if place <= last {
				r.Fail()
			}
			last = place
		})
		if required != 3 || slices.ContainsFunc(items, func(o written) bool { return o.KeyID == w.KeyID }) || len(items) == contract.MaxEntries {
			r.Fail()
		}
		items = append(items, w)
	})
	return items, r.Whole() && len(items) > 0
}
