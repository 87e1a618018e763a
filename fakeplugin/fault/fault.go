package fault

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// Fault is a validated fault with all its parameters, ready to be injected. Make one with Parse.
type Fault struct {
	Name        string
	Methods     []Method      // that it strikes
	For         time.Duration // 0: until released
	Count       int           // 0: any number of calls
	Probability float64       // of striking a call that it could strike
	values      map[string]any
	definition  Definition
	failure     profile.Failure // of a provider-failure that is in force
}

// Strikes reports whether f strikes at one of the methods. A fault that does not strike at calls concerns all of them.
func (f Fault) Strikes(methods []Method) bool {
	return len(f.Methods) == 0 || slices.ContainsFunc(methods, func(m Method) bool { return slices.Contains(f.Methods, m) })
}

// Params is every parameter that differs from "no bound", as it would be written.
func (f Fault) Params() map[string]any {
	params := map[string]any{}
	for name, v := range f.values {
		params[name] = written(v)
	}
	if len(f.Methods) > 0 {
		params["method"] = formatMethods(f.Methods)
	}
	if f.For > 0 {
		params["for"] = f.For.String()
	}
	if f.Count > 0 {
		params["count"] = f.Count
	}
	if f.Probability < 1 {
		params["probability"] = f.Probability
	}
	return params
}

func written(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return v.String()
	case codes.Code:
		if v <= codes.Unauthenticated {
			return v.String()
		}
		return int(v)
	case fs.FileMode:
		return fmt.Sprintf("%04o", v)
	default:
		return v
	}
}

// MarshalJSON writes the form that Parse reads: name and flat params.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(Spec{Name: f.Name, Params: f.Params()})
}

// The typed parameters, for Shape and Check. Parse has put a value of the right type in for every parameter of the definition that has a default; of others
// the value is zero.

func (f Fault) Text(name string) string            { return value[string](f, name) }
func (f Fault) Int(name string) int                { return value[int](f, name) }
func (f Fault) Float(name string) float64          { return value[float64](f, name) }
func (f Fault) Bool(name string) bool              { return value[bool](f, name) }
func (f Fault) Code(name string) codes.Code        { return value[codes.Code](f, name) }
func (f Fault) Mode(name string) fs.FileMode       { return value[fs.FileMode](f, name) }
func (f Fault) Duration(name string) time.Duration { return value[time.Duration](f, name) }

func value[T any](f Fault, name string) T {
	v, _ := f.values[name].(T)
	return v
}
