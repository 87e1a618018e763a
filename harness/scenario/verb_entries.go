package scenario

// Entries writes entries on the operator CR under a field manager that is no reporter's. With Node it overwrites the entry of that node, in the wire form
// of the run. Without it puts Count entries of nodes that do not exist into the typed list, in place of those from before.
type Entries struct {
	Count int    `yaml:"count,omitempty" minimum:"0" maximum:"200" without:"node" why:"a node has one entry for each plugin" description:"so many of nodes that do not exist, in place of those from before"`
	Node  string `yaml:"node,omitempty" refers:"node" description:"the entry of this node, which has a reporter"`
	KeyID string `yaml:"keyID,omitempty" with:"node" pattern:"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$" expected:"letters, digits and dashes, at most 63" description:"with node, an entry of the typed list for this keyID, such as one that an older release of the reporter has left; default the first keyID of the topology"`
}

func (*Entries) About() string {
	return "fills the typed list with entries of nodes that do not exist"
}

func (e *Entries) Validate(v Validation) {
	if (e.Node == "" || e.KeyID != "") && v.Scenario().Contract != ContractHealthReports {
		v.Add("", "entries without contract: healthreports, expected it: the list is of that form")
	}
	if e.Node != "" && e.KeyID == "" && v.Scenario().Topology.ByOperator() {
		v.Add("keyID", "an entry without a keyID, expected one: an operator numbers the keys")
	}
}
