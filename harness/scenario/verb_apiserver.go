package scenario

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// VerbAPIServer writes the cluster's APIServer configuration, for an API server operator to act upon.
const VerbAPIServer Verb = "apiserver"

// Outcomes of an apiserver or a rollback.
const (
	OutcomeAccepted = "accepted" // by the API; whether the operator takes a configuration, its conditions say
	OutcomeRefused  = "refused"
)

func outcomes() []string { return []string{OutcomeAccepted, OutcomeRefused} }

// Sections are the providers' fields beside type: KMS, in the form of the API.
func Sections() []string { return []string{"vault", "aws", "azure", "gcp", "thales"} }

// APIServer writes the cluster's APIServer configuration. Values may be wrong on purpose: that is for the operator to find.
type APIServer struct {
	Type string
	// Expect is OutcomeRefused if the API must not take it; empty: it must.
	Expect string
	// Lag is how much later than the others a node's API server gets each revision that comes of it.
	Lag Lag
	// Sections are the settings of providers by name: one with type KMS, otherwise none.
	Sections map[string]map[string]any
}

// Verb implements Action.
func (*APIServer) Verb() Verb { return VerbAPIServer }

func (a *APIServer) fields() (fields []field) {
	for _, name := range Sections() {
		fields = append(fields, optional(name, a.section(name)).doc("settings of the provider, in the form of the API; required ones of vault that are left out are filled in"))
	}
	return append(fields, required("type", keywordField(&a.Type, encryptionTypes()...)), optional("expect", keywordField(&a.Expect, outcomes()...)),
		optional("lag", lagField(&a.Lag)).doc("how much later than the others a node's API server gets each revision that comes of it"))
}

func (a *APIServer) section(name string) value {
	s := mapping(name)
	s.open = scalar(kindAny)
	return value{shape: s,
		read: func(n *yaml.Node) {
			if a.Sections == nil {
				a.Sections = map[string]map[string]any{}
			}
			section, _ := plainValue(n).(map[string]any)
			if section == nil {
				section = map[string]any{}
			}
			a.Sections[name] = section
		},
		get: func() any {
			if s, there := a.Sections[name]; there {
				return s
			}
			return nil
		},
	}
}

// Describe implements Action.
func (a *APIServer) Describe() string { return string(VerbAPIServer) + " " + parameters(a) }

func (*APIServer) harm() string { return string(VerbAPIServer) }

func (a *APIServer) check(v *validation, at place) {
	if !v.scenario.Topology.ByOperator() {
		v.add(at, "apiserver without an operator that acts upon it, expected lifecycle: operator in the topology, or encryption instead")
	}
	written := slices.DeleteFunc(Sections(), func(name string) bool { return a.Sections[name] == nil })
	switch kms := a.Type == TypeKMS; {
	case kms && len(written) == 0:
		v.add(at, "type KMS without a provider, expected one of %s", oneOf(Sections()))
	case kms && len(written) > 1:
		v.add(at.at(written[1]), "%s beside %s, expected one provider", written[1], written[0])
	case !kms && len(written) > 0:
		v.add(at.at(written[0]), "%s with type %s, expected it with KMS only", written[0], quote(a.Type))
	}
}
