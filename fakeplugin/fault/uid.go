package fault

// Values of the parameter plugin of no-uid: how the plugin treats a request without a uid.
const (
	uidAccepted = "accepts"
	uidRequired = "requires"
)

func noUID() Definition {
	return Definition{
		Name: "no-uid", Scope: ScopeCall, Methods: []Method{Encrypt, Decrypt}, Default: []Method{Encrypt, Decrypt},
		Summary: "Requests arrive without their uid, as from an API server of before the uid.",
		Params: []Param{{Name: "plugin", Kind: KindEnum, Enum: []string{uidAccepted, uidRequired}, Default: uidAccepted,
			Summary: "whether the plugin accepts them, or requires a uid and answers InvalidArgument"}},
		Shape: func(s *Strike) {
			s.Plan.UID = UIDDropped
			if s.Fault.Text("plugin") == uidRequired {
				s.Plan.UID = UIDRefused
			}
		},
	}
}
