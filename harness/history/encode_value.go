package history

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/contract/plain"
)

// optional is a field that is left out when it is empty.
func (w *encoder) optional(name, value string) *encoder {
	if value != "" {
		w.raw(name).string(value)
	}
	return w
}

func (w *encoder) optionalInt(name string, n int) *encoder {
	if n != 0 {
		w.raw(name).int(int64(n))
	}
	return w
}

// string is a JSON string. What needs more than a backslash is left to the library.
func (w *encoder) string(s string) *encoder {
	from := len(w.b)
	w.b = append(w.b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.b = append(append(w.b, s[start:i]...), '\\')
			start = i
		case c < 0x20 || c >= 0x80 || c == '<' || c == '>' || c == '&':
			text, _ := json.Marshal(s) // a string always encodes
			w.b = append(w.b[:from], text...)
			return w
		}
	}
	w.b = append(append(w.b, s[start:]...), '"')
	return w
}

func (w *encoder) time(t time.Time) error {
	if y := t.Year(); y < 0 || y > 9999 {
		return w.any(t)
	}
	if t.Location() != time.UTC {
		w.b = append(t.AppendFormat(append(w.b, '"'), time.RFC3339Nano), '"')
		return nil
	}
	w.second(t)
	w.fraction(t.Nanosecond())
	w.raw(`Z"`)
	return nil
}

// second is a time without what is less; many events in a row share one.
func (w *encoder) second(t time.Time) {
	if s := t.Unix(); s != w.at || len(w.began) == 0 {
		w.at, w.began = s, t.AppendFormat(append(w.began[:0], '"'), "2006-01-02T15:04:05")
	}
	w.b = append(w.b, w.began...)
}

// fraction of a second, without zeros at its end.
func (w *encoder) fraction(ns int) {
	if ns == 0 {
		return
	}
	var digits [10]byte
	digits[0] = '.'
	for i := 9; i > 0; i-- {
		digits[i] = byte('0' + ns%10)
		ns /= 10
	}
	w.b = append(w.b, bytes.TrimRight(digits[:], "0")...)
}

// float is without an exponent, unless the number is very small or large.
func (w *encoder) float(f float64) *encoder {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) || math.IsNaN(f) {
		_ = w.any(f) // it is a sum of durations
		return w
	}
	w.b = strconv.AppendFloat(w.b, f, 'f', -1, 64)
	return w
}

// document is JSON that came from elsewhere: as it is, if it is as an encoder would write it.
func (w *encoder) document(raw json.RawMessage) error {
	if bytes.ContainsAny(raw, "<>&") || !plain.Is(string(raw)) && (bytes.ContainsAny(raw, " \t\r\n\u2028\u2029") || !json.Valid(raw)) {
		return w.any(raw)
	}
	w.b = append(w.b, raw...)
	return nil
}
