package altsvc

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newTable(static ...string) *table {
	return &table{origin: "lb:6443", maxAge: DefaultMaxAge, block: DefaultBlock, static: static}
}

// at is a situation without connections and without alternatives on this machine.
func at(now time.Time, tried ...string) situation {
	return situation{now: now, tried: tried, connected: func(string) bool { return false }, local: func() []netip.Addr { return nil }}
}

func (s situation) withLocal(ips ...string) situation {
	s.local = func() (all []netip.Addr) {
		for _, ip := range ips {
			all = append(all, netip.MustParseAddr(ip))
		}
		return all
	}
	return s
}

func (t *table) mustLearn(tb testing.TB, now time.Time, field string) {
	tb.Helper()
	if _, err := t.learn(now, field, 0); err != nil {
		tb.Fatal(err)
	}
}

const three = `h2="10.0.0.2:6443", h2="10.0.0.3:6443", h2="10.0.0.4:6443"`

// order is the order in which a request tries alternatives that all fail to connect.
func order(t *table, s situation) (all []string) {
	for {
		address := t.next(s)
		if address == "" {
			return all
		}
		all = append(all, address)
		s.tried = append(s.tried, address)
	}
}

// S4-02: stay with the alternative in use; else this machine's; else the origin, if it is listed; else the next one; origin last.
func TestSelectionOrder(t *testing.T) {
	const a, b, c, lb = "10.0.0.2:6443", "10.0.0.3:6443", "10.0.0.4:6443", "lb:6443"
	withOrigin := three + `, h2="lb:6443"`
	for name, test := range map[string]struct {
		field   string
		static  []string
		current string
		local   []string
		want    []string
	}{
		"nothing":                    {"", nil, "", nil, nil},
		"server's order":             {three, nil, "", nil, []string{a, b, c}},
		"this machine first":         {three, nil, "", []string{"10.0.0.4"}, []string{c, a, b}},
		"origin before others":       {withOrigin, nil, "", nil, []string{lb, a, b, c}},
		"this machine before origin": {withOrigin, nil, "", []string{"10.0.0.3"}, []string{b, lb, a, c}},
		"stick":                      {withOrigin, nil, b, []string{"10.0.0.4"}, []string{b, c, lb, a}},
		"static after learned":       {three, []string{"10.0.0.9:6443", a}, "", nil, []string{a, b, c, "10.0.0.9:6443"}},
		"static alone":               {"", []string{c, b}, "", []string{"10.0.0.3"}, []string{b, c}},
		"IPv6 of this machine":       {`h2="10.0.0.2:6443", h2="[fd00::1]:6443"`, nil, "", []string{"fd00::1"}, []string{"[fd00::1]:6443", a}},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(test.static...)
			if test.field != "" {
				table.mustLearn(t, noon, test.field)
			}
			table.current = test.current
			if got := order(table, at(noon).withLocal(test.local...)); !slices.Equal(got, test.want) {
				t.Errorf("order %v, want %v", got, test.want)
			}
		})
	}
}

// S4-02: the alternative in use stays in use when a better one returns, so that clients do not flap.
func TestStickAfterBlockade(t *testing.T) {
	table := newTable()
	local := at(noon).withLocal("10.0.0.2")
	table.mustLearn(t, noon, three)
	table.used(table.next(local), local)
	table.failed(noon, "10.0.0.2:6443", false)
	table.used(table.next(local), local)
	later := noon.Add(DefaultBlock)
	if got := table.next(at(later).withLocal("10.0.0.2")); got != "10.0.0.3:6443" {
		t.Errorf("after the blockade: %q", got)
	}
}

// S4-03: a network error blocks for a time, a certificate error for ever, also when the alternative is listed again.
func TestBlockades(t *testing.T) {
	table := newTable()
	table.mustLearn(t, noon, three)
	table.failed(noon, "10.0.0.2:6443", false)
	table.failed(noon, "10.0.0.3:6443", true)
	table.failed(noon, "10.0.0.3:6443", false) // does not shorten it
	table.mustLearn(t, noon, three+`; ma=3600`)
	for _, test := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{"10.0.0.4:6443"}},
		{DefaultBlock - 1, []string{"10.0.0.4:6443"}},
		{DefaultBlock, []string{"10.0.0.2:6443", "10.0.0.4:6443"}},
	} {
		if got := order(table, at(noon.Add(test.after))); !slices.Equal(got, test.want) {
			t.Errorf("after %v: %v, want %v", test.after, got, test.want)
		}
	}
	table.mustLearn(t, noon.Add(1000*time.Hour), three)
	if got := order(table, at(noon.Add(1000*time.Hour))); !slices.Equal(got, []string{"10.0.0.2:6443", "10.0.0.4:6443"}) {
		t.Errorf("after 1000 h: %v", got)
	}
}

// S4-06: an entry is used for new connections for at most 70 s, whatever its ma is. A connection that exists stays in use.
func TestEntriesExpire(t *testing.T) {
	for field, lifetime := range map[string]time.Duration{
		`h2="10.0.0.2:6443"`:                         70 * time.Second,
		`h2="10.0.0.2:6443"; ma=3600`:                70 * time.Second,
		`h2="10.0.0.2:6443"; ma=9999999999999999999`: 70 * time.Second,
		`h2="10.0.0.2:6443"; ma=10`:                  10 * time.Second,
		`h2="10.0.0.2:6443"; ma=0`:                   0,
	} {
		table := newTable()
		table.mustLearn(t, noon, field)
		if got := order(table, at(noon.Add(lifetime-1))); lifetime > 0 && len(got) != 1 {
			t.Errorf("%s: not usable before %v", field, lifetime)
		}
		end := at(noon.Add(lifetime))
		if got := order(table, end); got != nil {
			t.Errorf("%s: usable after %v", field, lifetime)
		}
		end.connected = func(string) bool { return true }
		if got := order(table, end); got != nil {
			t.Errorf("%s: usable after %v although it was not in use", field, lifetime)
		}
		table.current = "10.0.0.2:6443"
		if got := order(table, end); len(got) != 1 {
			t.Errorf("%s: in use and connected, but not usable after %v", field, lifetime)
		}
	}
}

// A response with the same field makes the entries fresh again. This is the usual case.
func TestRefresh(t *testing.T) {
	table := newTable()
	table.mustLearn(t, noon, three)
	if changed, err := table.learn(noon.Add(time.Minute), three, 0); changed || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	if got := order(table, at(noon.Add(2*time.Minute))); len(got) != 3 {
		t.Errorf("2 min later: %v", got)
	}
}

// S4-08: members and their addresses change, and the client follows the field.
func TestMembersChange(t *testing.T) {
	table := newTable()
	table.mustLearn(t, noon, three)
	table.used("10.0.0.2:6443", at(noon))
	table.mustLearn(t, noon, `h2="10.0.0.3:6443", h2="10.0.0.5:7443"`)
	if table.current != "" {
		t.Errorf("current is %q, which is no member any more", table.current)
	}
	if got := order(table, at(noon)); !slices.Equal(got, []string{"10.0.0.3:6443", "10.0.0.5:7443"}) {
		t.Errorf("order %v", got)
	}
}

// A field that cannot be read changes nothing.
func TestUnreadableFieldIsIgnored(t *testing.T) {
	table := newTable()
	table.mustLearn(t, noon, three)
	if changed, err := table.learn(noon, `h2="10.0.0.9`, 0); changed || err == nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	if got := order(table, at(noon)); len(got) != 3 {
		t.Errorf("order %v", got)
	}
}

// For every sequence of events: a choice is an alternative that is listed, not blocked, not tried, and fresh or connected and in
// use; a request comes to the origin after at most as many attempts as there are alternatives; and what is in use remains so
// until it fails, expires or is removed.
func TestSelectionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Map(rapid.IntRange(1, 5), func(i int) string { return fmt.Sprintf("10.0.0.%d:6443", i) })
		table := newTable(rapid.SliceOfNDistinct(address, 0, 2, rapid.ID[string]).Draw(t, "static")...)
		now := noon
		forever := map[string]bool{}
		until := map[string]time.Time{}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				field := Field{Clear: true}
				for _, a := range rapid.SliceOfNDistinct(address, 0, 4, rapid.ID[string]).Draw(t, "listed") {
					ip := netip.MustParseAddrPort(a)
					field.Clear = false
					field.Alternatives = append(field.Alternatives, Alternative{Protocol: "h2", Host: ip.Addr().String(), Port: ip.Port(),
						MaxAge: time.Duration(rapid.IntRange(0, 100).Draw(t, "ma")) * time.Second})
				}
				if _, err := table.learn(now, field.String(), 0); err != nil {
					t.Fatal(err)
				}
			case 1:
				now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			case 2, 3:
				a, bad := address.Draw(t, "failed"), rapid.Bool().Draw(t, "certificate")
				table.failed(now, a, bad)
				forever[a] = forever[a] || bad
				until[a] = now.Add(DefaultBlock)
			default:
				s := at(now)
				connected := rapid.Bool().Draw(t, "connected")
				s.connected = func(string) bool { return connected }
				before := table.current
				stuck := before != "" && table.usable(before, s)
				all := order(table, s)
				for i, a := range all {
					if forever[a] || now.Before(until[a]) || slices.Contains(all[:i], a) || !slices.Contains(table.addresses(), a) {
						t.Fatalf("choice %q of %v: blocked %v until %v, alternatives %v", a, all, forever[a], until[a], table.addresses())
					}
				}
				if stuck && all[0] != before {
					t.Fatalf("%q is in use, the choice is %q", before, all[0])
				}
				if len(all) > 0 {
					table.used(all[0], s)
					if table.current != all[0] {
						t.Fatalf("%q answered, %q is in use", all[0], table.current)
					}
				}
			}
		}
	})
}
