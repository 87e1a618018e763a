package scenario

// Clock sets the clock of a node, or of the aggregators.
type Clock struct {
	Node string `yaml:"node,omitempty" target:"clock" refers:"nodes" without:"role" why:"aggregators have a clock of their own"`
	Role string `yaml:"role,omitempty" target:"clock" enum:"aggregator"` // empty: a node's
	Mode string `yaml:"mode" required:"true" enum:"ahead,behind,restore" undo:"restore"`
	// By is how far from the true time.
	By Duration `yaml:"by,omitempty" with:"mode=ahead,behind" needed:"2I"`
}

func (*Clock) About() string {
	return "sets the clock of a node or of the aggregators"
}

func (c *Clock) Validate(v Validation) {
	if c.Role == "" && c.Node == "" {
		v.Add("", "a clock of nobody, expected a node, or role: aggregator")
	}
}
