package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/internal/host"
)

// inSlot is a unit that knows where it is, and notes its ends.
type inSlot struct {
	broken
	where string
	ended *[]string
	fails error
}

func (u inSlot) Start(context.Context) error { return nil }
func (u inSlot) Stop(context.Context) error {
	*u.ended = append(*u.ended, u.where)
	return u.fails
}

// aPlace is the pod of cp-1 with its containers for plugins.
type aPlace struct {
	*podPlugins
	t     *testing.T
	node  cluster.Node
	dir   string
	ended []string
	fails error // how plugins end
}

func newPlace(t *testing.T) *aPlace {
	a := &aPlace{t: t, node: cluster.Node{Name: "cp-1"}, dir: t.TempDir()}
	u := &units{journals: tail.NewSet(), rows: map[unitKey]*unitState{}}
	a.podPlugins = newPodPlugins(podFiles{a.dir, a.dir}, u, pluginContainerUnits(), func(keyID, unit string) (*cluster.Plugin, error) {
		g, err := cluster.NewPlugin(host.Host{}, "cp-1", keyID, "", "/s", filepath.Join(a.dir, journalPrefix+"cp-1-"+keyID+journalSuffix))
		if err == nil {
			g.Unit = inSlot{where: keyID + "@" + unit, ended: &a.ended, fails: a.fails}
		}
		return g, err
	})
	return a
}

// add starts plugins, each of which must be in the container that stands behind it.
func (a *aPlace) add(want ...string) {
	a.t.Helper()
	for _, w := range want {
		keyID, _, _ := strings.Cut(w, "@")
		g, err := a.start(a.t.Context(), &a.node, keyID)
		if err != nil {
			a.t.Fatal(err)
		}
		if got := g.Unit.(inSlot).where; got != w || a.node.Plugin(keyID) != g {
			a.t.Errorf("%s, want %s", got, w)
		}
	}
}

// KeyIDs that have a container of their name are in it; others are where there is room, hashes of configurations among them.
func TestSlotsOfPlugins(t *testing.T) {
	a := newPlace(t)
	a.add("2@plugin-2", "1@plugin-1", "2@plugin-2", "q7xa2nfe@plugin-3")
	a = newPlace(t)
	a.add("3@plugin-3", "4@plugin-1", "5@plugin-2")
}

// An operator's plugins come and go, and what comes has the place of what went.
func TestSlotsAreGivenBack(t *testing.T) {
	a := newPlace(t)
	a.add("1@plugin-1", "2@plugin-2", "3@plugin-3")
	_, err := a.start(t.Context(), &a.node, "4")
	if err == nil || !strings.Contains(err.Error(), "plugin cp-1/4: each of the 3 containers that the pod has for plugins is taken, by 1, 2, 3") {
		t.Errorf("a fourth plugin: %v", err)
	}
	second := a.node.Plugin("2")
	a.node.RemovePlugin("2")
	a.add("4@plugin-2")
	if got := strings.Join(a.ended, " "); got != "2@plugin-2" {
		t.Errorf("ended before the next: %s", got)
	}
	a.node.RemovePlugin("1")
	a.add("2@plugin-1")
	if a.node.Plugin("2") == second {
		t.Error("what was given up is back")
	}
}

// What does not end keeps its place: two programs cannot be in one container.
func TestSlotOfWhatDoesNotEnd(t *testing.T) {
	a := newPlace(t)
	a.fails = errors.New("it hangs")
	a.add("1@plugin-1", "2@plugin-2", "3@plugin-3")
	a.node.RemovePlugin("1")
	if _, err := a.start(t.Context(), &a.node, "4"); err == nil || !strings.Contains(err.Error(), "takes the place of 1: it hangs") {
		t.Error(err)
	}
	if a.node.Plugin("4") != nil {
		t.Error("it is the node's all the same")
	}
}

// After an operator nothing is left of its plugins, the lines in their journals included.
func TestSlotsAreReset(t *testing.T) {
	a := newPlace(t)
	a.add("1@plugin-1", "2@plugin-2")
	a.node.RemovePlugin("1")
	for _, keyID := range []string{"1", "2", "q7xa2nfe"} {
		if err := os.WriteFile(filepath.Join(a.dir, "journal-cp-1-"+keyID+".jsonl"), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.reset(t.Context(), &a.node, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(a.ended, " "); got != "1@plugin-1 2@plugin-2" || len(a.node.Plugins()) != 0 {
		t.Errorf("ended %s, left %d", got, len(a.node.Plugins()))
	}
	left, err := filepath.Glob(filepath.Join(a.dir, "journal-*"))
	if err != nil || len(left) != 3 {
		t.Fatal(left, err)
	}
	for _, file := range left {
		if info, err := os.Stat(file); err != nil || info.Size() > 0 {
			t.Errorf("%s has lines of the scenario before, %v", file, err)
		}
	}
	a.add("2@plugin-2", "1@plugin-1")
}

// A plugin under test begins each scenario with a new process. A fake one goes on.
func TestPluginsUnderTestBeginAnew(t *testing.T) {
	for _, underTest := range []bool{false, true} {
		a := newPlace(t)
		a.add("1@plugin-1")
		a.underTest = underTest
		if err := a.reset(t.Context(), &a.node, []string{"1"}); err == nil {
			t.Error("there is no fake plugin whose faults could be ended")
		}
		if len(a.ended) > 0 != underTest || a.node.Plugin("1") == nil {
			t.Errorf("under test %t: ended %v", underTest, a.ended)
		}
	}
}

// What a supervisor has written before its container changed hands is about the plugin that was in it then.
func TestWhoseLinesOfAJournal(t *testing.T) {
	a := newPlace(t)
	var told []string
	a.units.sink = func(_ time.Time, p history.Process) { told = append(told, p.KeyID+" "+p.State) }
	first := a.pluginContainers[0]
	if err := a.units.follow(unitKey{a.dir, first.unit}, "cp-1", first.who); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(a.dir, supervisorJournal(first.unit)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	say := func(state string) {
		fmt.Fprintf(file, `{"time":"2026-11-22T10:00:00Z","state":%q,"pid":7}`+"\n", state)
	}
	a.add("1@plugin-1", "2@plugin-2", "3@plugin-3")
	say(history.ProcessStarted)
	say(history.ProcessStopped)
	a.node.RemovePlugin("1")
	a.add("9@plugin-1")
	say(history.ProcessStarted)
	if err := a.units.journals.Poll(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(told, ", "); got != "1 started, 1 stopped, 9 started" {
		t.Errorf("told %s", got)
	}
	if e := a.units.take(onNode("cp-1"), nil); len(e) != 1 || e[0].process.KeyID != "9" {
		t.Errorf("living: %+v", e)
	}
}

// What is asked of a unit after its pod was away is asked of the plugin that is in it.
func TestInUnit(t *testing.T) {
	g := &cluster.Plugin{KeyID: "2", Target: cluster.Target{Unit: &held{unitKey: unitKey{"", "plugin-1"}}}}
	behind := &cluster.Plugin{KeyID: "3", Target: cluster.Target{Unit: underTestIn("", "plugin-3")}}
	if !inUnit(behind, "plugin-3-under-test") || inUnit(behind, "plugin-3") {
		t.Error("a plugin under test is in a container of its own")
	}
	if !inUnit(g, "plugin-1") || inUnit(g, "plugin-2") || inUnit(&cluster.Plugin{Target: cluster.Target{Unit: broken{}}}, "plugin-1") {
		t.Error("the container counts, not the keyID")
	}
}

// A pod that is made anew has other containers. A plugin whose container is gone is the node's no longer; one that comes back is another.
func TestPodBecomesAnother(t *testing.T) {
	a := newPlace(t)
	a.become(unitsOfPlugins([]string{"1", "2"}), nil, &a.node)
	a.add("1@plugin-1", "2@plugin-2")
	first := a.node.Plugin("1")
	a.become(unitsOfPlugins([]string{"2"}), nil, &a.node)
	if got := strings.Join(a.names(), " "); got != "plugin-2" || a.node.Plugin("1") != nil || a.node.Plugin("2") == nil {
		t.Errorf("containers %s, plugins of the node: %v", got, a.node.Plugins())
	}
	if _, err := a.start(t.Context(), &a.node, "1"); err == nil {
		t.Error("the pod has no container for it")
	}
	a.become(unitsOfPlugins([]string{"2", "1"}), nil, &a.node)
	a.add("1@plugin-1")
	if a.node.Plugin("1") == first || len(a.ended) > 0 {
		t.Errorf("the plugin of the pod before is back, or was ended by hand: %v", a.ended)
	}
}

// The kubelet's pod has a container for each plugin, and no reporter without one.
func TestSpecOfARevision(t *testing.T) {
	for want, plugins := range map[string][]string{"": nil, "vault-kms-plugin-7 kms-health-reporter": {"7"}} {
		s := spec(images{plugin: "p", reporter: "r"}, "lb", podRevision{number: 3, plugins: unitsOfPlugins(plugins)})
		var names []string
		for _, c := range s.Sidecars {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want || s.Labels[labelRevision] != "3" {
			t.Errorf("sidecars %q, labels %v, want %q", got, s.Labels, want)
		}
	}
}
