package live

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/recorder"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Whoever records for a further API server says so once, also where the process says so itself.
func TestScoped(t *testing.T) {
	log := history.NewLog(nil)
	g := recorder.NewGate(log, false)
	log.Record(time.Now(), "engine", &history.Run{})
	s := scoped{g, history.OAuthAPIServer}
	p := history.Process{Role: history.RoleAPIServer, APIServer: history.OAuthAPIServer, Node: "cp-1", State: history.ProcessReady}
	s.Record(time.Now(), "backend", &p)
	g.Record(time.Now(), "backend", owned(&p))
	g.Record(time.Now(), "backend", owned(&history.Process{Role: history.RoleEtcd}))
	events := log.Events()[1:]
	if len(events) != 3 || events[0].APIServer != p.APIServer || events[1].APIServer != p.APIServer || events[2].APIServer != "" || events[1].Process == nil {
		t.Errorf("%+v", events)
	}
	if cluster.NameOf(p) == cluster.NameOf(history.Process{Role: history.RoleAPIServer, Node: "cp-1"}) {
		t.Error("two processes have one name")
	}
}
