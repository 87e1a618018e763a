package scenario

// Entries writes entries on the operator CR under a field manager that is no reporter's. With Node it overwrites the entry of that node, in the wire form
// of the run. Without it puts Count entries of nodes that do not exist into the typed list, in place of those from before.
type Entries struct {
	Count int    `yaml:"count,omitempty" minimum:"0" maximum:"200" without:"node" why:"a node has one entry for each plugin" description:"so many of nodes that do not exist, in place of those from before"`
	Node  string `yaml:"node,omitempty" refers:"node" description:"the entry of this node, which has a reporter"`
}

func (*Entries) About() string {
	return "fills the typed list with entries of nodes that do not exist"
}

func (e *Entries) Validate(v Validation) {
	if e.Node == "" && v.Scenario().Contract != ContractHealthReports {
		v.Add("", "entries without contract: healthreports, expected it: the list is of that form")
	}
}
