package history

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fill puts drawn values, zero ones among them, into everything below v.
func fill(t *rapid.T, v reflect.Value) {
	texts := rapid.SampledFrom([]string{"", "", "ok", `a "quoted" \ text`, "<&>", "lines\nand\ttabs", "é", "\u2028", "\xff", "\x01", "kek-1"})
	switch v.Interface().(type) {
	case time.Time:
		at := time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "second"), rapid.SampledFrom([]int64{0, 1, 120000000}).Draw(t, "ns"))
		v.Set(reflect.ValueOf(rapid.SampledFrom([]time.Time{at.UTC(), at.In(time.FixedZone("z", 5400)), {}}).Draw(t, "time")))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(rapid.SampledFrom([]string{"", `{}`, `{"a":"b"}`, `{"a": "<b>"}`, "[\n1]", `"\u2028` + "\u2028" + `"`}).Draw(t, "body"))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.SampledFrom([]int64{0, 1, -7, 1 << 40}).Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.SampledFrom([]uint64{0, 1, 1 << 60}).Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{0, 0.001234, 1e-7, 12.5, 1e21, 3, 1e20}).Draw(t, "float"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(-1, 2).Draw(t, "length"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i))
			}
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]any]() {
			v.Set(reflect.ValueOf(rapid.SampledFrom([]map[string]any{nil, {}, {"mode": "slow", "delay<": 50, "on": true, "all": []string{"a"}, "rate": 0.5, "none": nil}}).Draw(t, "params")))
			return
		}
		v.Set(reflect.ValueOf(rapid.SampledFrom([]map[string][]string{nil, {}, {"b": {"x"}, "a": nil, "c<": {}}}).Draw(t, "map")))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	}
}

// What is written by hand is what the library writes, of every payload that is.
func TestLineIsWhatTheLibraryWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &encoder{}
		for range 3 {
			e := Event{Kind: KindCall}
			fill(t, reflect.ValueOf(&e.Seq).Elem())
			fill(t, reflect.ValueOf(&e.At).Elem())
			fill(t, reflect.ValueOf(&e.Source).Elem())
			switch rapid.IntRange(0, 8).Draw(t, "payload") {
			case 0:
				e.Call = &Call{}
				fill(t, reflect.ValueOf(e.Call).Elem())
			case 1:
				e.Request = &Request{}
				fill(t, reflect.ValueOf(e.Request).Elem())
			case 2:
				e.Object = &Object{}
				fill(t, reflect.ValueOf(e.Object).Elem())
			case 3:
				e.Envelope = &Envelope{}
				fill(t, reflect.ValueOf(e.Envelope).Elem())
			case 4:
				e.Metrics = &Metrics{}
				fill(t, reflect.ValueOf(e.Metrics).Elem())
			case 5:
				e.Process = &Process{}
				fill(t, reflect.ValueOf(e.Process).Elem())
			case 6:
				e.Data = &Data{}
				fill(t, reflect.ValueOf(e.Data).Elem())
			case 7:
				e.Action = &Action{}
				fill(t, reflect.ValueOf(e.Action).Elem())
			}
			got, err := w.line(&e)
			want, wantErr := json.Marshal(e)
			if (err != nil) != (wantErr != nil) || err == nil && string(got) != string(want)+"\n" {
				t.Fatalf("got  %s, %v\nwant %s, %v", got, err, want, wantErr)
			}
		}
	})
}

// Nothing else encodes by its own rules, and no field was added that is not written.
func TestHandwrittenPayloadsHaveTheFieldsThatTheyHad(t *testing.T) {
	for _, x := range []struct {
		of     any
		fields int
	}{{Call{}, 18}, {Request{}, 20}, {Cause{}, 3}, {Object{}, 7}, {Condition{}, 5}, {Envelope{}, 11}, {EnvelopeRequest{}, 7}, {Metrics{}, 2}, {PluginMetrics{}, 5}, {Process{}, 8}, {Data{}, 10}, {Action{}, 6}} {
		if n := reflect.TypeOf(x.of).NumField(); n != x.fields {
			t.Errorf("%T has %d fields, expected %d: write the new one in encode_payload.go too", x.of, n, x.fields)
		}
	}
}
