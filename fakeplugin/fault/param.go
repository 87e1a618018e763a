package fault

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

type Kind string

const (
	KindDuration Kind = "duration" // "250ms"; time.Duration
	KindInt      Kind = "int"
	KindFloat    Kind = "float"
	KindString   Kind = "string"
	KindEnum     Kind = "enum"
	KindBool     Kind = "bool"
	KindCode     Kind = "grpc-code" // a name or number; codes.Code
	KindMethods  Kind = "methods"   // see ParseMethods
	KindMode     Kind = "file-mode" // octal; fs.FileMode
)

// Param describes one parameter of a fault.
type Param struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind"`
	Default any      `json:"default,omitempty"` // as it is written
	Min     float64  `json:"min,omitempty"`     // seconds for a duration
	Max     float64  `json:"max,omitempty"`     // seconds for a duration, bytes for a string
	Enum    []string `json:"enum,omitempty"`
	Summary string   `json:"summary"`
}

// parse reads a value as it comes from JSON, YAML, Go or a flag.
func (p Param) parse(v any) (any, error) {
	s, ok := text(v)
	var value any = s
	switch p.Kind {
	case KindDuration:
		d, err := time.ParseDuration(s)
		value, ok = d, err == nil && p.within(d.Seconds())
	case KindInt:
		n, err := strconv.ParseFloat(s, 64)
		value, ok = int(n), err == nil && n == math.Trunc(n) && p.within(n)
	case KindFloat:
		n, err := strconv.ParseFloat(s, 64)
		value, ok = n, err == nil && p.within(n)
	case KindBool:
		b, err := strconv.ParseBool(s)
		value, ok = b, err == nil
	case KindEnum:
		ok = ok && slices.Contains(p.Enum, s)
	case KindString:
		if p.Max > 0 && float64(len(s)) > p.Max {
			return nil, fmt.Errorf("%s: %d bytes, at most %v are allowed", p.Name, len(s), p.Max)
		}
	case KindCode, KindMode, KindMethods:
		if ok {
			return p.parseSpecial(s)
		}
	}
	if !ok {
		return nil, p.wants(v)
	}
	return value, nil
}

// parseSpecial reads the kinds whose errors say more than what was expected.
func (p Param) parseSpecial(s string) (any, error) {
	switch p.Kind {
	case KindCode:
		return parseCode(s)
	case KindMode:
		return parseMode(s)
	default:
		return ParseMethods(s)
	}
}

// within is false for NaN.
func (p Param) within(n float64) bool { return n >= p.Min && (p.Max == 0 || n <= p.Max) }

func (p Param) wants(v any) error {
	var what string
	switch p.Kind {
	case KindDuration:
		what = fmt.Sprintf("a duration such as 250ms, from %v to %v", seconds(p.Min), seconds(p.Max))
	case KindInt:
		what = fmt.Sprintf("a whole number from %.0f to %.0f", p.Min, p.Max)
	case KindFloat:
		what = fmt.Sprintf("a number from %v to %v", p.Min, p.Max)
	case KindBool:
		what = "true or false"
	case KindEnum:
		what = "one of " + strings.Join(p.Enum, ", ")
	default:
		what = "a text"
	}
	return fmt.Errorf("%s: got %.64q, expected %s", p.Name, fmt.Sprint(v), what)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// text is v as it would be written in a flag; ok is false for lists and objects.
func text(v any) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case int, int64, uint64, float64, bool, json.Number, time.Duration:
		return fmt.Sprint(v), true
	default:
		return "", false
	}
}
