// Package plain reads JSON that is written plainly: minified, in ASCII, and with no escapes but \", \\ and \n. Nearly all that a reporter
// writes is, and whoever reads thousands of reports a second spends most of his time on it. Of everything else it says that it is
// not plain, and the library has to look: it never reads a text otherwise than encoding/json would.
//
// What the texts mean is not its business.
package plain

import "strings"

// Reader reads a text from its beginning. Once something was not plain, all that it gives is empty. The zero value reads nothing.
type Reader struct {
	text string
	at   int
	deep int
	bad  bool
}

// mostDeep is how deep objects and lists may be in each other.
const mostDeep = 50

// Of begins to read.
func Of(text string) *Reader { return &Reader{text: text} }

// Whole is whether everything was plain, and read to its end.
func (r *Reader) Whole() bool { return !r.bad && r.at == len(r.text) }

// Plain is whether everything was plain so far.
func (r *Reader) Plain() bool { return !r.bad }

// Fail is for one who does not know what he reads.
func (r *Reader) Fail() { r.bad = true }

// is says whether c comes next, and takes it.
func (r *Reader) is(c byte) bool {
	if r.bad || r.at >= len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *Reader) must(c byte) {
	if !r.is(c) {
		r.bad = true
	}
}

// Items calls item for each item of a list; it has to read it.
func (r *Reader) Items(item func()) {
	r.must('[')
	for first := true; !r.bad && !r.is(']'); first = false {
		if !first {
			r.must(',')
		}
		item()
	}
}

// Fields calls field for each field of an object; it has to read the value. That a field stands once only is up to him.
func (r *Reader) Fields(field func(name string)) {
	r.must('{')
	for first := true; !r.bad && !r.is('}'); first = false {
		if !first {
			r.must(',')
		}
		name := r.Text()
		r.must(':')
		field(name)
	}
}

// Text is a string.
func (r *Reader) Text() string {
	r.must('"')
	from, escaped := r.at, false
	for ; !r.bad && r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			s := r.text[from:r.at]
			r.at++
			if escaped {
				return unescaped(s)
			}
			return s
		case c == '\\':
			escaped = true
			if r.at++; r.at == len(r.text) || r.text[r.at] != '"' && r.text[r.at] != '\\' && r.text[r.at] != 'n' {
				r.bad = true
			}
		case c < 0x20 || c >= 0x7f:
			r.bad = true
		}
	}
	r.bad = true
	return ""
}

func unescaped(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		c := s[i+1]
		if c == 'n' {
			c = '\n'
		}
		b.WriteByte(c)
		s = s[i+2:]
	}
}

// Object is an object of objects, lists and texts; nil where anything else is in it, or a field stands twice.
func (r *Reader) Object() map[string]any {
	out := map[string]any{}
	r.Fields(func(name string) {
		if _, twice := out[name]; twice {
			r.bad = true
			return
		}
		out[name] = r.value()
	})
	if r.bad {
		return nil
	}
	return out
}

func (r *Reader) value() any {
	r.deep++
	defer func() { r.deep-- }()
	switch {
	case r.bad || r.at >= len(r.text) || r.deep > mostDeep:
		r.bad = true
		return nil
	case r.text[r.at] == '{':
		return r.Object()
	case r.text[r.at] == '[':
		out := []any{}
		r.Items(func() { out = append(out, r.value()) })
		return out
	default:
		return r.Text()
	}
}

// Is says whether a text is one plain object, list or string, whatever is in it.
func Is(text string) bool {
	r := Reader{text: text}
	r.skip()
	return r.Whole()
}

func (r *Reader) skip() {
	r.deep++
	defer func() { r.deep-- }()
	switch {
	case r.bad || r.at >= len(r.text) || r.deep > mostDeep:
		r.bad = true
	case r.text[r.at] == '{':
		r.Fields(func(string) { r.skip() })
	case r.text[r.at] == '[':
		r.Items(r.skip)
	default:
		r.Text()
	}
}
