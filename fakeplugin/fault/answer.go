package fault

// answers are faults of what Status answers.
func answers() []Definition {
	return []Definition{
		{
			Name: "healthz", Scope: ScopeCall, Methods: []Method{Status}, Default: []Method{Status},
			Summary: "Status answers with another healthz than ok.",
			Params:  []Param{{Name: "text", Kind: KindString, Default: "not ok", Max: maxParamText, Summary: "the healthz text; may be empty"}},
			Shape:   func(s *Strike) { s.Edit(Edit{Field: FieldHealthz, Value: s.Fault.Text("text")}) },
		},
		{
			Name: "version", Scope: ScopeCall, Methods: []Method{Status}, Default: []Method{Status},
			Summary: "Status answers with a wrong version.",
			Params:  []Param{{Name: "version", Kind: KindString, Default: "v1", Max: maxParamText, Summary: "the version; may be empty"}},
			Shape:   func(s *Strike) { s.Edit(Edit{Field: FieldVersion, Value: s.Fault.Text("version")}) },
		},
		{
			Name: "version-change", Scope: ScopeCall, Methods: []Method{Status}, Default: []Method{Status},
			Summary: "The version in Status changes while the plugin runs, from one that is allowed to another that is.",
			Params: []Param{
				{Name: "to", Kind: KindString, Default: "v2beta1", Max: maxParamText, Summary: "the version after the change"},
				{Name: "after", Kind: KindInt, Default: 1, Max: 1e9, Summary: "how many Status calls still get the first version"},
			},
			Shape: func(s *Strike) {
				if s.StatusHits >= s.Fault.Int("after") {
					s.Edit(Edit{Field: FieldVersion, Value: s.Fault.Text("to")})
				}
			},
		},
	}
}
