package live

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
	Logs, ControlPlaneLogs string
}

type NodeDescription struct {
	Name      string
	APIServer string // URL
	Plugins   []PluginDescription
}

type PluginDescription struct{ KeyID, Socket, Control, Journal string }

// Describe writes the administrator's kubeconfig and says where everything is.
func (e *Environment) Describe() (Description, error) {
	kubeconfig := filepath.Join(e.traits.Dir, "admin.kubeconfig")
	text, err := e.controlPlane.Kubeconfig("kmsharness-admin", []string{"system:masters"}, e.controlPlane.ClientServer())
	if err == nil {
		err = os.WriteFile(kubeconfig, text, 0o600)
	}
	if err != nil {
		return Description{}, fmt.Errorf("kubeconfig of the administrator: %w", err)
	}
	d := Description{Kubeconfig: kubeconfig, RemoteKMS: e.controlPlane.KMS().Socket, Logs: e.logDir, ControlPlaneLogs: e.controlPlane.Logs()[0].Dir}
	for _, n := range e.nodes() {
		described := NodeDescription{Name: n.Name, APIServer: n.Server.URL()}
		for _, g := range n.Plugins() {
			described.Plugins = append(described.Plugins, PluginDescription{g.KeyID, g.Socket, g.ControlSocket, g.Journal})
		}
		d.Nodes = append(d.Nodes, described)
	}
	return d, nil
}
