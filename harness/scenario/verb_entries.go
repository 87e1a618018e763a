package scenario

import "github.com/kmsharness/kmsharness/contract"

// VerbEntries fills the typed list with entries of nodes that do not exist.
const VerbEntries Verb = "entries"

// Entries puts entries of nodes that do not exist into the typed list of the operator CR, as other software could leave them: Count in
// place of those from before.
type Entries struct{ Count int }

// Verb implements Action.
func (*Entries) Verb() Verb { return VerbEntries }

func (e *Entries) fields() []field {
	return []field{required("count", intField(&e.Count, 0, contract.MaxTypedReports)).doc("so many in place of those from before")}
}

// Describe implements Action.
func (e *Entries) Describe() string {
	return "typed list: entries of nodes that do not exist" + parameters(e)
}

func (e *Entries) check(v *validation, at place) {
	if v.scenario.Contract != ContractHealthReports {
		v.add(at, "entries without contract: healthreports, expected it: the list is of that form")
	}
}
