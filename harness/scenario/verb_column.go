package scenario

// Column compares a cell of the table that the API server makes of ClusterOperators for oc get with what a person should see.
type Column struct {
	Name  string `yaml:"name" required:"true" pattern:"^[A-Za-z ]{1,64}$" expected:"the name of a column such as Degraded" description:"of the column"`
	Shows string `yaml:"shows" required:"true" description:"text of its cell"`
}

func (*Column) About() string {
	return "compares a cell of oc get clusteroperators, as the API server makes it"
}
