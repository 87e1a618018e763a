package contract

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseInertia(t *testing.T) {
	for text, want := range map[string]Inertia{
		"":                              {},
		"0s":                            {},
		"2m":                            {All: 2 * time.Minute},
		"NodeControllerDegraded=10m":    {Types: map[string]time.Duration{"NodeControllerDegraded": 10 * time.Minute}},
		"BDegraded=0s,90s,ADegraded=1h": {All: 90 * time.Second, Types: map[string]time.Duration{"ADegraded": time.Hour, "BDegraded": 0}},
	} {
		items := strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
		got, err := ParseInertia(items)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseInertia(strings.Split(got.String(), ",")); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%q: %q is read as %+v, %v", text, got.String(), again, err)
		}
	}
}

func TestParseInertiaNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"soon":                      `inertia "soon": expected a duration such as 2m`,
		"120":                       `inertia "120": expected a duration`,
		"-2m":                       `inertia "-2m": expected a duration`,
		"XDegraded":                 `inertia "XDegraded": expected a duration`,
		"XDegraded=":                `inertia "XDegraded=": expected a duration`,
		"XAvailable=2m":             `inertia "XAvailable=2m": expected a condition type that ends in Degraded`,
		"=2m":                       `expected a condition type that ends in Degraded`,
		"2m,3m":                     `inertia "3m": expected one duration for each condition type`,
		"XDegraded=2m,XDegraded=2m": `inertia "XDegraded=2m": expected one duration for each condition type`,
	} {
		if _, err := ParseInertia(strings.Split(text, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", text, err, want)
		}
	}
}

func TestUnionEqual(t *testing.T) {
	typed := func(d time.Duration) Union {
		return Union{Inertia: Inertia{All: time.Minute, Types: map[string]time.Duration{"XDegraded": d}}}
	}
	for _, c := range []struct {
		a, b Union
		want bool
	}{
		{Union{}, Union{UnknownIsBad: true}, false},
		{typed(1), typed(1), true},
		{typed(1), typed(2), false},
		{typed(1), Union{Inertia: Inertia{All: time.Minute}}, false},
	} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("%+v and %+v: equal is %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
