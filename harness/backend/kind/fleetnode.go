package kind

import (
	"context"
	"errors"
	"os"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// makeNode makes what the pod beside a node finds there, and says how it is reached; the pod is the Deployment's.
func (f *fleet) makeNode(ctx context.Context, beside *live.Node, keyIDs []string) error {
	name, apiServer := beside.Name, f.Stand.APIServer
	at := f.layout.node(name).pod(apiServer)
	if err := errors.Join(at.make(), f.writeFiles(name, at, live.Plugins(keyIDs...))); err != nil {
		return err
	}
	server, err := f.newServer(name, at)
	if err != nil {
		return err
	}
	n := &live.Node{Name: name, APIServer: apiServer, Server: server, ReporterPlace: f.reporterPlace(name, at)}
	if n.Admin, err = f.client(beside.Server.URL()); err != nil {
		return err
	}
	if n.Direct, err = f.client(server.url); err != nil {
		return err
	}
	makePlugin := func(keyID, unit string) (*live.Plugin, error) {
		identity := history.Process{Role: history.RolePlugin, APIServer: apiServer, Node: name, KeyID: keyID}
		return f.pluginIn(at, unit, identity, "", func() string { return f.key(keyID) }, &f.profile)
	}
	if err := f.pluginsIn(ctx, n, &f.plugins, place{files: at, slots: newSlots(), make: makePlugin}, keyIDs); err != nil {
		return err
	}
	f.nodes.Add(n)
	beside.Beside = append(beside.Beside, n)
	return f.follow(at.dir, unitAPIServer, history.Process{Role: history.RoleAPIServer, APIServer: apiServer, Node: name})
}

// writeFiles writes what an API server finds at its start.
func (f *fleet) writeFiles(node string, at podFiles, told live.Encryption) error {
	text, err := encryptionText(told, []string{live.Flunders})
	if err != nil {
		return err
	}
	cert, key, err := f.authority.Serving(f.Stand.APIServer, f.DNSName())
	if err != nil {
		return err
	}
	kubeconfig, err := f.authority.Kubeconfig(f.User(), nil, f.serverFor(node))
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{encryptionFile: text, furtherCert: cert, furtherKey: key, furtherKubeconfig: kubeconfig} {
		err = errors.Join(err, os.WriteFile(at.file(name), content, credentials))
	}
	return err
}

func (f *fleet) client(url string) (*live.Client, error) {
	config, err := f.authority.AdminConfig(url)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // sample-apiserver calls its first version deprecated
	return live.NewClient(config)
}

// reporterPlace is that of a Deployment's sidecar: it has no API server of its own node, and goes through the load balancer.
func (f *fleet) reporterPlace(node string, at podFiles) live.Place {
	return live.Place{
		Server: f.serverFor(node), Dir: at.dir, SeenDir: at.seen, Mode: credentials, SocketDir: inNodeSocket,
		MetricsAddress: ":" + portMetrics, MetricsURL: "http://" + f.address(node) + ":" + f.ports.metrics + "/metrics",
		Unit: f.unitOf(at.dir, unitReporter),
	}
}
