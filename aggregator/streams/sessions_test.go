package streams

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
)

func reportOf(node string, statuses ...contract.Status) contract.Report {
	r := contract.Report{Node: node}
	for i, s := range statuses {
		r.Entries = append(r.Entries, contract.Entry{KeyID: fmt.Sprint(i + 1), Status: s})
	}
	return r
}

// replicaOf is the replica of a report, valid or not.
func replicaOf(r contract.Report, generation int64) contract.ReplicaHealth {
	out, _ := Replica(r, generation)
	return out
}

// opened is sessions with two expected nodes and a stream of cp-1.
func opened(t *testing.T) (*Sessions, ID) {
	t.Helper()
	s := &Sessions{}
	s.Expect([]string{"cp-1", "cp-2"})
	id, surplus, err := s.Open("cp-1")
	if err != nil || id == 0 || surplus != 0 {
		t.Fatalf("open: %v, %v, %v", id, surplus, err)
	}
	return s, id
}

func replica(s *Sessions, node string) string {
	r := s.Picture().Replicas[node]
	return r.Status + "/" + r.Reason
}

// S1-02: a node is Unknown when its reporter connects, until it reports, and when it disconnects.
func TestUnknownOnConnectAndDisconnect(t *testing.T) {
	s, id := opened(t)
	steps := []struct {
		do      func() bool
		changed bool
		want    string
	}{
		{func() bool { return true }, true, "Unknown/Connected"},
		{func() bool { return s.Reported(id, replicaOf(reportOf("cp-1", contract.StatusHealthy), 1)) }, true, "True/AsExpected"},
		{func() bool { return s.Reported(id, replicaOf(reportOf("cp-1", contract.StatusHealthy), 1)) }, false, "True/AsExpected"},
		{func() bool {
			return s.Reported(id, replicaOf(reportOf("cp-1", contract.StatusHealthy, contract.StatusError), 1))
		}, true, "False/PluginNotHealthy"},
		{func() bool { return s.Close("cp-1", id) }, true, "Unknown/Disconnected"},
		{func() bool { return s.Close("cp-1", id) }, false, "Unknown/Disconnected"},
		{func() bool { _, _, err := s.Open("cp-1"); return err == nil }, true, "Unknown/Connected"},
	}
	for i, step := range steps {
		if got := step.do(); got != step.changed || replica(s, "cp-1") != step.want {
			t.Errorf("step %d: changed %v, %s, want %v, %s", i, got, replica(s, "cp-1"), step.changed, step.want)
		}
	}
	if got := replica(s, "cp-2"); got != "Unknown/Disconnected" {
		t.Errorf("cp-2, which never connected, is %s", got)
	}
}

func TestNobodyIsExpectedAtFirst(t *testing.T) {
	var s Sessions
	if _, _, err := s.Open("cp-1"); !errors.Is(err, ErrNotExpected) {
		t.Errorf("open: %v", err)
	}
	if s.Current("cp-1", 0) || s.Current("cp-1", 1) || len(s.Picture().Replicas) > 0 || len(s.Shown(s.Picture())) > 0 {
		t.Error("the zero value has streams")
	}
}

// The end of one of two streams of a node changes nothing: the other one goes on.
func TestCloseLeavesTheOtherStream(t *testing.T) {
	s, older := opened(t)
	s.Reported(older, replicaOf(reportOf("cp-1", contract.StatusHealthy), 1))
	newer, surplus, err := s.Open("cp-1")
	if err != nil || surplus != 0 || replica(s, "cp-1") != "True/AsExpected" {
		t.Fatalf("second stream: surplus %v, %v, %s", surplus, err, replica(s, "cp-1"))
	}
	if s.Close("cp-1", older) || !s.Current("cp-1", newer) || s.Current("cp-1", older) || replica(s, "cp-1") != "True/AsExpected" {
		t.Errorf("after the end of the older one: %s", replica(s, "cp-1"))
	}
	if !s.Close("cp-1", newer) || replica(s, "cp-1") != "Unknown/Disconnected" {
		t.Errorf("after the end of both: %s", replica(s, "cp-1"))
	}
}

// A node has two streams at most: the oldest ends.
func TestSurplusStream(t *testing.T) {
	s, first := opened(t)
	second, _, _ := s.Open("cp-1")
	third, surplus, err := s.Open("cp-1")
	if err != nil || surplus != first || s.Current("cp-1", first) || !s.Current("cp-1", second) || !s.Current("cp-1", third) {
		t.Errorf("surplus %v, want %v: %v", surplus, first, err)
	}
	if s.Close("cp-1", first) { // its handler ends now
		t.Error("the end of a surplus stream changed the node")
	}
}

// S1-06: a node that should not report any more has no replica and no stream; one that should and does not is Unknown.
func TestExpect(t *testing.T) {
	s, id := opened(t)
	other, _, _ := s.Open("cp-2")
	s.Reported(id, replicaOf(reportOf("cp-1", contract.StatusHealthy), 1))
	if ended := s.Expect([]string{"cp-2", "cp-3"}); !slices.Equal(ended, []ID{id}) {
		t.Errorf("ended %v, want %v", ended, id)
	}
	if s.Reported(id, replicaOf(reportOf("cp-1", contract.StatusHealthy), 1)) || s.Current("cp-1", id) || !s.Current("cp-2", other) {
		t.Error("a stream of a node that is gone still speaks")
	}
	if p := s.Picture(); len(p.Replicas) != 2 || replica(s, "cp-2") != "Unknown/Connected" || replica(s, "cp-3") != "Unknown/Disconnected" {
		t.Errorf("picture %v", p.Replicas)
	}
	if ended := s.Expect([]string{"cp-1", "cp-2", "cp-3"}); len(ended) > 0 || replica(s, "cp-1") != "Unknown/Disconnected" {
		t.Errorf("a node that came back: ended %v, %s", ended, replica(s, "cp-1"))
	}
}

// S1-02: a stream stands once what was shown is no older than its opening, and only once.
func TestShown(t *testing.T) {
	s, first := opened(t)
	before := s.Picture()
	second, _, _ := s.Open("cp-2")
	if got := s.Shown(before); !slices.Equal(got, []ID{first}) {
		t.Errorf("an older picture: %v stand, want %v", got, first)
	}
	if got := s.Shown(s.Picture()); !slices.Equal(got, []ID{second}) {
		t.Errorf("a newer picture: %v stand, want %v", got, second)
	}
	if got := s.Shown(s.Picture()); len(got) > 0 {
		t.Errorf("%v occur twice", got)
	}
	third, _, _ := s.Open("cp-1")
	picture := s.Picture()
	s.Close("cp-1", third)
	if got := s.Shown(picture); len(got) > 0 {
		t.Errorf("%v ended before it was shown, and stands", got)
	}
}

// TestSessions draws any course of events. A model knows which streams are there.
func TestSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, expected := &Sessions{}, map[string]bool{}
		open, ended := map[string][]ID{}, map[ID]string{}
		end := func(node string, id ID) {
			ended[id] = node
			open[node] = slices.DeleteFunc(open[node], func(o ID) bool { return o == id })
		}
		node := rapid.SampledFrom([]string{"cp-1", "cp-2", "cp-3"})
		status := rapid.SampledFrom([]contract.Status{contract.StatusHealthy, contract.StatusUnhealthy, contract.StatusError})
		var standing []ID
		t.Repeat(map[string]func(*rapid.T){
			"expect": func(t *rapid.T) {
				nodes := rapid.SliceOfDistinct(node, rapid.ID[string]).Draw(t, "nodes")
				expected = map[string]bool{}
				for _, n := range nodes {
					expected[n] = true
				}
				var want []ID
				for n, ids := range open {
					if !expected[n] {
						want = append(want, ids...)
					}
				}
				slices.Sort(want)
				got := s.Expect(nodes)
				if !slices.Equal(got, want) {
					t.Fatalf("ended %v, want %v", got, want)
				}
				for _, id := range want {
					for n := range open {
						if slices.Contains(open[n], id) {
							end(n, id)
						}
					}
				}
			},
			"open": func(t *rapid.T) {
				n := node.Draw(t, "node")
				id, surplus, err := s.Open(n)
				if (err == nil) != expected[n] {
					t.Fatalf("open %s: %v", n, err)
				}
				if err != nil {
					return
				}
				if surplus != 0 {
					end(n, surplus)
				}
				if open[n] = append(open[n], id); len(open[n]) > MaxStreams {
					t.Fatalf("%s has streams %v", n, open[n])
				}
			},
			"close": func(t *rapid.T) {
				n := node.Draw(t, "node")
				if len(open[n]) == 0 {
					t.Skip("it has none")
				}
				id := rapid.SampledFrom(open[n]).Draw(t, "stream")
				end(n, id)
				if changed := s.Close(n, id); changed != (len(open[n]) == 0) {
					t.Fatalf("close %v of %s: changed %v, left %v", id, n, changed, open[n])
				}
			},
			"report": func(t *rapid.T) {
				n := node.Draw(t, "node")
				if len(open[n]) == 0 {
					t.Skip("it has none")
				}
				s.Reported(rapid.SampledFrom(open[n]).Draw(t, "stream"), replicaOf(reportOf(n, status.Draw(t, "status")), rapid.Int64Range(0, 2).Draw(t, "generation")))
			},
			"show": func(t *rapid.T) {
				for _, id := range s.Shown(s.Picture()) {
					if slices.Contains(standing, id) || ended[id] != "" {
						t.Fatalf("%v stands again, or after its end", id)
					}
					standing = append(standing, id)
				}
			},
			"": func(t *rapid.T) {
				for id, n := range ended { // who ended never speaks
					if before := s.Picture().Replicas[n]; s.Current(n, id) || s.Reported(id, replicaOf(reportOf(n, contract.StatusHealthy), 7)) || s.Close(n, id) || s.Picture().Replicas[n] != before {
						t.Fatalf("stream %v of %s has ended, and speaks", id, n)
					}
				}
				for n, ids := range open {
					for _, id := range ids {
						if !s.Current(n, id) {
							t.Fatalf("stream %v of %s does not speak", id, n)
						}
					}
				}
				listed(t, s.Picture(), expected, open)
			},
		})
	})
}

// listed: each node that should report is in exactly one list, and is Unknown without a stream.
func listed(t *rapid.T, p Picture, expected map[string]bool, open map[string][]ID) {
	generation := rapid.Int64Range(0, 2).Draw(t, "generation")
	status, _ := p.Status(contract.HealthStatus{}, generation, true, time.Unix(1e9, 0))
	if len(status.Replicas) != len(expected) || len(status.ReadyNodes)+len(status.NotReadyNodes) != len(expected) {
		t.Fatalf("%d nodes expected: %+v", len(expected), status)
	}
	for _, r := range status.Replicas {
		n, ready := r.NodeName, slices.Contains(status.ReadyNodes, r.NodeName)
		if !expected[n] || ready == slices.Contains(status.NotReadyNodes, n) || ready != (r.Status == "True" && r.ObservedGeneration == generation) {
			t.Fatalf("%s of %+v", n, status)
		}
		if len(open[n]) == 0 && (r.Status != "Unknown" || r.Reason != contract.ReplicaDisconnected) {
			t.Fatalf("%s has no stream: %+v", n, r)
		}
	}
	if c := status.Conditions; len(c) != 1 || c[0].Type != contract.HealthReady || (c[0].Status == "True") != (len(status.NotReadyNodes) == 0) {
		t.Fatalf("conditions %+v of %+v", c, status)
	}
}

// A node may send burst reports at once and perInterval in each interval after that. What is refused takes no place.
func TestAdmit(t *testing.T) {
	const interval = 40 * time.Second
	var s Sessions
	now := time.Unix(1000, 0)
	sent := func(node string, now time.Time) (n int) {
		for range 100 {
			if at, ok := s.Admit(node, interval, now, now); ok && at.After(now) {
				t.Errorf("%s: admitted at %v, after %v", node, at, now)
			} else if ok {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		node  string
		after time.Duration
		want  int
	}{{"cp-1", 0, burst}, {"cp-2", 0, burst}, {"cp-1", interval / perInterval, 1}, {"cp-1", 2 * interval, perInterval + 3}, {"cp-1", 100 * interval, burst}} {
		if got := sent(c.node, now.Add(c.after)); got != c.want {
			t.Errorf("%s after %v: %d reports, want %d", c.node, c.after, got, c.want)
		}
	}
	if at, ok := s.Admit("cp-2", interval, now, now.Add(interval)); !ok || at != now.Add(interval/perInterval) {
		t.Errorf("a report that may wait is admitted at %v, %v", at, ok)
	}
}
