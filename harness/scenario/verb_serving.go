package scenario

// Modes of Serving.
const (
	ServingForeign      = "foreign"
	ServingHTTP1        = "http1"
	ServingUnadvertised = "unadvertised"
	ServingRestore      = "restore"
)

// Serving is how an API server serves, for connections that begin from then on.
type Serving struct {
	Node string `yaml:"node,omitempty" target:"apiserver" refers:"nodes" description:"of the API server; default all"`
	Mode string `yaml:"mode" required:"true" enum:"foreign,http1,unadvertised,restore" undo:"foreign=restore,http1=restore,unadvertised=restore" description:"foreign: its certificate for kubernetes.default is of another authority; http1: without HTTP/2; unadvertised: without Alt-Svc, as with the feature gate off; restore: as before"`
}

func (*Serving) About() string { return "changes the certificate, protocol or Alt-Svc of API servers" }
