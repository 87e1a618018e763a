package scenario

// Memory bounds what the sidecars of a node take: the reporters and plugins of all API servers.
type Memory struct {
	Node string `yaml:"node" required:"true" refers:"nodes"`
	Most int    `yaml:"most" required:"true" minimum:"1" maximum:"4096" description:"MiB of resident memory, of all together"`
}

// ClusterWide implements ClusterWide: a node has the sidecars of all API servers.
func (*Memory) ClusterWide() {}

func (*Memory) About() string {
	return "compares the memory of all reporters and plugins of a node, together, with a bound"
}
