package scenario

// Watches is when aggregators learn of changes.
type Watches struct {
	Node string   `yaml:"node,omitempty" target:"apiserver" refers:"nodes" description:"of the API server; default all"`
	Mode string   `yaml:"mode" required:"true" enum:"late,expired,closed,restore" undo:"late=restore" description:"late: for as long as by says; expired and closed: ended now; restore: no longer late"`
	By   Duration `yaml:"by,omitempty" positive:"true" with:"mode=late" needed:"2I"`
}

func (*Watches) About() string {
	return "lets the watches of aggregators be late, or ends them"
}
