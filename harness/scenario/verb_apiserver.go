package scenario

import "slices"

// Outcomes of an apiserver or a rollback.
const (
	OutcomeAccepted = "accepted" // by the API; whether the operator takes a configuration, its conditions say
	OutcomeRefused  = "refused"
)

// APIServer writes the cluster's APIServer configuration. Values may be wrong on purpose: that is for the operator to find.
type APIServer struct {
	Type string `yaml:"type" required:"true" enum:"KMS,identity,aescbc,aesgcm"`
	// Expect is OutcomeRefused if the API must not take it; empty: it must.
	Expect string `yaml:"expect,omitempty" enum:"accepted,refused"`
	Lag    Lag    `yaml:"lag,omitempty" description:"how much later than the others a node's API server gets each revision that comes of it"`
	// Sections are the settings of providers by name: one with type KMS, otherwise none.
	Sections map[string]map[string]any `yaml:",inline" keys:"vault,aws,azure,gcp,thales" with:"type=KMS" description:"settings of the provider, in the form of the API; required ones of vault that are left out are filled in"`
}

func (*APIServer) Harm() string { return "apiserver" }

func (*APIServer) About() string {
	return "writes the configuration that the API server operator acts upon"
}

func (a *APIServer) Validate(v Validation) {
	if !v.Scenario().Topology.ByOperator() {
		v.Add("", "apiserver without an operator that acts upon it, expected lifecycle: operator in the topology, or encryption instead")
	}
	known := tagOf[APIServer]("Sections", "keys")
	written := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return a.Sections[name] == nil })
	switch kms := a.Type == TypeKMS; {
	case kms && len(written) == 0:
		v.Add("", "type KMS without a provider, expected one of %s", oneOf(known))
	case kms && len(written) > 1:
		v.Add(written[1], "%s beside %s, expected one provider", written[1], written[0])
	}
}
