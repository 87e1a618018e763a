package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// poorHost lacks CAP_SYS_RESOURCE (bit 24); richHost can grant everything.
var (
	poorHost = limits{bounding: 0x1fffeffffff}
	richHost = limits{bounding: math.MaxUint64, oomScore: -1000}
)

const rich = `{"capabilities":{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"],"inheritable":null},"oomScoreAdj":-500}`

// process asks for more than a poor host has.
const process = `{"capabilities":{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"],"inheritable":null},"oomScoreAdj":-500,
	"rlimits":[{"type":"RLIMIT_NOFILE","hard":1048576,"soft":1024}]}`

func TestRewrite(t *testing.T) {
	const poor = `{"capabilities":{"bounding":["CAP_KILL"],"inheritable":null},"oomScoreAdj":0}`
	const unknown, odd = `{"capabilities":{"bounding":["CAP_NEW"]}}`, `{"capabilities":1,"oomScoreAdj":"x"}`
	container := func(process string) string { return `{"process":` + process + `,"x":9007199254740993}` }
	for name, c := range map[string]struct {
		kind     specKind
		host     limits
		in, want string
	}{
		"process, poor host":    {processSpec, poorHost, process, poor},
		"process, rich host":    {processSpec, richHost, process, rich},
		"container, poor host":  {containerSpec, poorHost, container(process), container(poor)},
		"container, no process": {containerSpec, poorHost, `{"root":{}}`, `{"root":{}}`},
		"unknown capability":    {processSpec, poorHost, unknown, unknown},
		"odd types":             {processSpec, poorHost, odd, odd},
	} {
		got, err := rewrite([]byte(c.in), c.kind, c.host)
		if err != nil || !same(t, got, []byte(c.want)) {
			t.Errorf("%s: %v\n%s, expected\n%s", name, err, got, c.want)
		}
	}
	if _, err := rewrite([]byte("{"), processSpec, poorHost); err == nil {
		t.Error("half a spec was taken")
	}
}

// same compares JSON without losing digits of big numbers.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	values := [2]map[string]json.RawMessage{}
	for i, text := range [][]byte{a, b} {
		if err := json.Unmarshal(text, &values[i]); err != nil {
			t.Fatal(err)
		}
	}
	var x, y any
	for text, to := range map[*[]byte]*any{&a: &x, &b: &y} {
		if err := json.Unmarshal(*text, to); err != nil {
			t.Fatal(err)
		}
	}
	return string(values[0]["x"]) == string(values[1]["x"]) && reflect.DeepEqual(x, y)
}

func TestSpecOf(t *testing.T) {
	for _, c := range []struct {
		args []string
		path string
		kind specKind
	}{
		{[]string{"--root", "/r", "create", "--bundle", "/b", "id"}, "/b/config.json", containerSpec},
		{[]string{"run", "-b=/b", "id"}, "/b/config.json", containerSpec},
		{[]string{"create", "id"}, "config.json", containerSpec},
		{[]string{"exec", "--process", "/p.json", "id"}, "/p.json", processSpec},
		{[]string{"exec", "id", "sh"}, "", noSpec},
		{[]string{"delete", "--force", "id"}, "", noSpec},
		{nil, "", noSpec},
	} {
		if path, kind := specOf(c.args); path != c.path || kind != c.kind {
			t.Errorf("%q: %q, %v", c.args, path, kind)
		}
	}
}

func TestBoundingSet(t *testing.T) {
	if poorHost.grants("CAP_SYS_RESOURCE") || !poorHost.grants("CAP_SYS_TIME") || !poorHost.grants("CAP_SYS_NICE") {
		t.Error("bit 24 is CAP_SYS_RESOURCE, its neighbours are not")
	}
}

func TestHostLimits(t *testing.T) {
	l, err := hostLimits()
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("CapBnd:\t%016x\n", l.bounding); !strings.Contains(string(status), want) {
		t.Errorf("no %q in\n%s", want, status)
	}
}

func TestRewriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(`{"process":{"oomScoreAdj":-500}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rewriteFile(path, containerSpec, poorHost); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != `{"process":{"oomScoreAdj":0}}` {
		t.Errorf("%s, %v", got, err)
	}
}
