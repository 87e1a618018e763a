package fault

// sockets are faults of connections and of the socket.
func sockets() []Definition {
	return []Definition{
		{
			Name: "connection-reset", Scope: ScopeConnection, Methods: Methods(), Default: Methods(),
			Summary: "The connection breaks in mid-call, with every other call on it.",
			Params: []Param{
				{Name: "after", Kind: KindDuration, Default: "0s", Max: hour, Summary: "how far into the call"},
				{Name: "truncate", Kind: KindBool, Default: false, Summary: "send the first bytes of the answer before"},
			},
			Shape: func(s *Strike) {
				s.Plan.Reset = &Reset{After: s.Fault.Duration("after"), Truncate: s.Fault.Bool("truncate")}
			},
		},
		{
			Name: "refuse-connections", Scope: ScopeSocket,
			Summary: "New connections are refused, or accepted and closed at once.",
			Params: []Param{existing(), {Name: "how", Kind: KindEnum, Enum: []string{"refuse", "hang-up"}, Default: "refuse",
				Summary: "refuse: connect fails with ECONNREFUSED; hang-up: it succeeds and the connection closes at once"}},
			socket: func(a Active, s *Socket) {
				a.cut(s)
				if a.Fault.Text("how") == "hang-up" {
					s.HangUp = true
					return
				}
				s.worsen(FileStale)
			},
		},
		{
			Name: "socket-removed", Scope: ScopeSocket,
			Summary: "The socket file is gone.",
			Params:  []Param{existing()},
			socket:  func(a Active, s *Socket) { a.cut(s); s.worsen(FileMissing) },
		},
		{
			Name: "socket-replaced", Scope: ScopeSocket,
			Summary: "Something else stands in the socket's place.",
			Params: []Param{existing(), {Name: "with", Kind: KindEnum, Enum: []string{"silent", "file", "new"}, Default: "silent",
				Summary: "silent: a socket that accepts and never answers; file: a regular file; new: a new socket of the plugin, as after a restart"}},
			socket: func(a Active, s *Socket) {
				a.cut(s)
				switch a.Fault.Text("with") {
				case "silent":
					s.worsen(FileSilent)
				case "file":
					s.worsen(FileDecoy)
				default:
					s.Renewed += a.ID + ";"
				}
			},
		},
		{
			Name: "socket-stale", Scope: ScopeSocket,
			Summary: "The socket file is left behind and nobody listens on it, as after a SIGKILL.",
			Params:  []Param{existing()},
			socket:  func(a Active, s *Socket) { a.cut(s); s.worsen(FileStale) },
		},
		{
			Name: "socket-permissions", Scope: ScopeSocket,
			Summary: "The socket file has the wrong mode, so that a client without privileges cannot connect.",
			Params:  []Param{existing(), {Name: "mode", Kind: KindMode, Default: "0000", Summary: "the mode, octal"}},
			socket: func(a Active, s *Socket) {
				a.cut(s)
				mode := a.Fault.Mode("mode")
				s.Mode = &mode
			},
		},
	}
}

// existing is the parameter of the socket faults that says what happens to the connections that are open.
func existing() Param {
	return Param{Name: "existing", Kind: KindEnum, Enum: []string{"close", "keep"}, Default: "close",
		Summary: "what happens to the connections that are open; a client with one notices nothing while it is kept"}
}

func (a Active) cut(s *Socket) {
	if a.Fault.Text("existing") != "keep" {
		s.Cut += a.ID + ";"
	}
}
