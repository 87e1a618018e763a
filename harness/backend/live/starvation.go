package live

import (
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/starvation"
)

// watchStarvation records when the harness, etcd and the API servers could have run and got no processor, until the recorder ends.
func (r *recorder) watchStarvation() {
	w := starvation.Watch{}
	of := map[int]history.Process{0: {Role: history.RoleHarness}}
	w.Record = func(s starvation.Span) {
		p := of[s.PID]
		r.sink.Record(s.To, history.RoleHarness, &history.Starvation{Role: p.Role, Node: p.Node, From: s.From.Round(0).UTC(), To: s.To.Round(0).UTC()})
	}
	if r.controlPlane.Traits().RealNodes { // their ids in their containers are not those of this machine
		w.Processes = func() (pids []int) {
			for name, role := range map[string]string{"etcd": history.RoleEtcd, "kube-apiserver": history.RoleAPIServer} {
				for _, pid := range starvation.Named(name) {
					of[pid], pids = history.Process{Role: role}, append(pids, pid)
				}
			}
			return pids
		}
	} else {
		w.Processes = func() (pids []int) {
			for _, p := range r.controlPlane.Running() {
				if p.Role == history.RoleEtcd || p.Role == history.RoleAPIServer {
					of[p.PID], pids = p, append(pids, p.PID)
				}
			}
			return pids
		}
	}
	w.Run(r.ctx)
}
