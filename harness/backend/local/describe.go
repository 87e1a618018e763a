package local

import (
	"fmt"
	"os"
	"path/filepath"
)

// Description is what a person needs to look into an environment.
type Description struct {
	// Kubeconfig is the administrator's, through the load balancer.
	Kubeconfig string
	Nodes      []NodeDescription
	// RemoteKMS is the socket of the remote KMS.
	RemoteKMS string
	// Logs of the system under test, and of the control plane.
	Logs, PlaneLogs string
}

// NodeDescription is one node.
type NodeDescription struct {
	Name      string
	APIServer string // URL
	Plugins   []PluginDescription
}

// PluginDescription is one plugin.
type PluginDescription struct{ KeyID, Socket, Control, Journal string }

// Describe writes the administrator's kubeconfig and says where everything is.
func (e *Environment) Describe() (Description, error) {
	kubeconfig := filepath.Join(e.plane.dir, "admin.kubeconfig")
	text, err := e.plane.cp.AdminKubeconfig("https://" + e.plane.front[fromClient].Addr())
	if err == nil {
		err = os.WriteFile(kubeconfig, text, 0o600)
	}
	if err != nil {
		return Description{}, fmt.Errorf("kubeconfig of the administrator: %w", err)
	}
	d := Description{Kubeconfig: kubeconfig, RemoteKMS: e.plane.kms.socket, Logs: e.logDir, PlaneLogs: e.plane.logs}
	for _, n := range e.nodes() {
		described := NodeDescription{Name: n.name, APIServer: n.server.URL()}
		for _, g := range n.pluginList() {
			described.Plugins = append(described.Plugins, PluginDescription{g.keyID, g.socket, g.controlSocket, g.journal})
		}
		d.Nodes = append(d.Nodes, described)
	}
	return d, nil
}
