package healthproto

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
)

// A report arrives as it was sent.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, last := contract.Report{Node: "cp-1"}, map[string]string{}
		for _, keyID := range rapid.SliceOfNDistinct(rapid.StringMatching(`[0-9]{1,4}`), 1, contract.MaxEntries, rapid.ID[string]).Draw(t, "keyIDs") {
			e := contract.Entry{KeyID: keyID, KEKID: rapid.StringN(0, 40, 80).Draw(t, "kekID"), Detail: rapid.StringN(0, 40, 80).Draw(t, "detail"),
				Status:      rapid.SampledFrom([]contract.Status{contract.StatusHealthy, contract.StatusUnhealthy, contract.StatusError}).Draw(t, "status"),
				LastChecked: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()}
			if rapid.Bool().Draw(t, "has a last kekID") {
				last[keyID] = rapid.StringN(1, 40, 80).Draw(t, "last")
			}
			in.Entries = append(in.Entries, e)
		}
		text, err := proto.Marshal(&healthv1.ReportRequest{Plugins: Plugins(in, last)})
		if err != nil {
			t.Fatal(err)
		}
		var request healthv1.ReportRequest
		if err := proto.Unmarshal(text, &request); err != nil {
			t.Fatal(err)
		}
		out, gotLast, err := Report("cp-1", request.GetPlugins())
		if err != nil || !reflect.DeepEqual(in, out) || !reflect.DeepEqual(last, gotLast) {
			t.Fatalf("%v: sent %+v %v, got %+v %v", err, in, last, out, gotLast)
		}
	})
}

// What is out of bounds is refused, here or when it is encoded, and says why. Texts are shortened there.
func TestHostile(t *testing.T) {
	good := func(change func(*healthv1.PluginHealth)) []*healthv1.PluginHealth {
		p := &healthv1.PluginHealth{KeyId: "1", KekId: "kek", Outcome: healthv1.Outcome_OUTCOME_HEALTHY, LastChecked: timestamppb.New(time.Unix(1e9, 0))}
		if change != nil {
			change(p)
		}
		return []*healthv1.PluginHealth{p}
	}
	for name, c := range map[string]struct {
		plugins []*healthv1.PluginHealth
		want    string
	}{
		"good":              {good(nil), ""},
		"no plugin":         {nil, "0 plugins, expected 1 to 32"},
		"too many":          {make([]*healthv1.PluginHealth, contract.MaxEntries+1), "33 plugins, expected 1 to 32"},
		"nil":               {[]*healthv1.PluginHealth{nil}, "plugin 0: last_checked"},
		"no time":           {good(func(p *healthv1.PluginHealth) { p.LastChecked = nil }), "plugin 0: last_checked"},
		"impossible time":   {good(func(p *healthv1.PluginHealth) { p.LastChecked.Seconds = math.MaxInt64 }), "plugin 0: last_checked"},
		"impossible nanos":  {good(func(p *healthv1.PluginHealth) { p.LastChecked.Nanos = -1 }), "plugin 0: last_checked"},
		"no outcome":        {good(func(p *healthv1.PluginHealth) { p.Outcome = healthv1.Outcome_OUTCOME_UNSPECIFIED }), "status"},
		"unknown outcome":   {good(func(p *healthv1.PluginHealth) { p.Outcome = 17 }), "status"},
		"negative outcome":  {good(func(p *healthv1.PluginHealth) { p.Outcome = -1 }), "status"},
		"no keyID":          {good(func(p *healthv1.PluginHealth) { p.KeyId = "" }), "keyID"},
		"huge keyID":        {good(func(p *healthv1.PluginHealth) { p.KeyId = strings.Repeat("1", 1<<16) }), "keyID"},
		"invalid UTF-8":     {good(func(p *healthv1.PluginHealth) { p.KekId = "\xff" }), ""},
		"detail, healthy":   {good(func(p *healthv1.PluginHealth) { p.Detail = "well" }), ""},
		"two of one keyID":  {append(good(nil), good(nil)...), "keyID"},
		"unhealthy, silent": {good(func(p *healthv1.PluginHealth) { p.Outcome = healthv1.Outcome_OUTCOME_UNHEALTHY }), ""},
	} {
		r, _, err := Report("cp-1", c.plugins)
		if err == nil {
			_, err = contract.EncodeMessage(r.Entries)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzReport: no bytes make a panic, and what is encoded in the end can be read again.
func FuzzReport(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x12\x02\x0a\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var request healthv1.ReportRequest
		if proto.Unmarshal(text, &request) != nil {
			return
		}
		r, _, err := Report("cp-1", request.GetPlugins())
		if err != nil {
			return
		}
		if message, err := contract.EncodeMessage(r.Entries); err == nil {
			if _, err := contract.DecodeMessage(message); err != nil {
				t.Errorf("%s cannot be read: %v", message, err)
			}
		}
	})
}
