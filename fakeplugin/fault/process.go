package fault

import (
	"errors"
	"time"
)

// processes are faults of the plugin as a process.
func processes() []Definition {
	return []Definition{
		{
			Name: "crash", Scope: ScopeProcess, Methods: Methods(), Default: Methods(),
			Summary: "The plugin dies: connections break, a stale socket stays; it is back when the fault is released, or never if the process exits.",
			Params: []Param{
				{Name: "on", Kind: KindEnum, Enum: []string{"now", "call"}, Default: "now", Summary: "die at once, or in the next call that it strikes"},
				{Name: "how", Kind: KindEnum, Enum: []string{"simulate", "exit"}, Default: "simulate",
					Summary: "simulate: the control API lives on and can release it; exit: the process ends without cleaning up"},
				{Name: "exit-code", Kind: KindInt, Default: 137, Min: 0, Max: 255, Summary: "the exit code, with how=exit; 137 is that of a SIGKILL or an OOM kill"},
			},
			Check: func(f Fault) error {
				if f.Text("on") == "now" && (f.Count > 0 || f.Probability < 1 || len(f.Methods) < len(Methods())) {
					return errors.New("method, count and probability need on=call")
				}
				return nil
			},
			Shape: func(s *Strike) {
				if s.Fault.Text("on") == "now" || s.Hits > 0 {
					s.Miss() // it is down already: this call came in by a connection that is about to close
					return
				}
				s.Plan.Crash = true
			},
			socket: func(a Active, s *Socket) {
				if a.Fault.Text("on") == "call" && a.Hits == 0 {
					return
				}
				s.Cut += a.ID + ";"
				s.worsen(FileStale)
				if a.Fault.Text("how") == "exit" {
					code := a.Fault.Int("exit-code")
					s.Exit = &code
				}
			},
		},
		{
			Name: "slow-start", Scope: ScopeProcess,
			Summary: "The plugin behaves as if it had just been started and took long to come up.",
			Params: []Param{{Name: "how", Kind: KindEnum, Enum: []string{"no-socket", "silent"}, Default: "no-socket",
				Summary: "no-socket: the socket appears when the plugin is up; silent: it is there at once and does not answer"}},
			defaultFor: 5 * time.Second,
			socket: func(a Active, s *Socket) {
				s.Cut += a.ID + ";"
				if a.Fault.Text("how") == "silent" {
					s.worsen(FileSilent)
					return
				}
				s.worsen(FileMissing)
			},
		},
	}
}
