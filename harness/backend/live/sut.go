package live

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

// systemUnderTest prepares and starts reporters and aggregators.
type systemUnderTest struct {
	e        *apiServer
	variants map[string]variant // of programs by name; guarded by e.mu
	legacy   *legacyTokens
}

// variant is how a program differs from the others of its role.
type variant struct {
	previous bool   // its release
	form     string // of its reports; empty: that of the scenario
}

// vary makes reporters and aggregators what an action says, from their next start on.
func (sut *systemUnderTest) vary(targets []cluster.Target, a *scenario.Process) {
	sut.e.mu.Lock()
	defer sut.e.mu.Unlock()
	for _, t := range targets {
		v := sut.variants[cluster.NameOf(t.Identity)]
		v.form = cmp.Or(a.Contract, v.form)
		if a.Release != "" {
			v.previous = a.Release == scenario.ReleasePrevious
		}
		if v != (variant{}) {
			sut.variants[cluster.NameOf(t.Identity)] = v
		}
	}
}

func (sut *systemUnderTest) variant(p history.Process) variant {
	sut.e.mu.Lock()
	defer sut.e.mu.Unlock()
	return sut.variants[cluster.NameOf(p)]
}

// prepareReporter gives the node's reporter its identity and its way to the API server: its own node's (connectivity
// loopback). It does not start it. Its metrics are at an address.
func (sut *systemUnderTest) prepareReporter(ctx context.Context, n *cluster.Node, metrics string) error {
	at := n.ReporterPlace
	kubeconfig, err := sut.reporterKubeconfig(ctx, n)
	if err != nil {
		return err
	}
	identity := history.Process{Role: history.RoleReporter, APIServer: sut.e.Name, Node: n.Name}
	unit := at.Unit(identity, func(context.Context) (cluster.Command, error) {
		return sut.reporterCommand(n, kubeconfig, metrics, sut.variant(identity))
	})
	n.SetReporter(&cluster.Target{Unit: unit, Identity: identity})
	return nil
}

// reporterGroups are the groups of a reporter's user. The user is that of the node in either case, so that the audit log tells who wrote. The policy
// that narrows a reporter to its own entry is for the members of contract.ReporterGroup.
func reporterGroups(r undertest.Reporter) []string {
	if r.Identity == history.IdentityAdmin {
		return []string{"system:masters", cluster.AdminReporters}
	}
	return []string{contract.ReporterGroup}
}

// reporterCommand is made at every start: the sockets change with the encryption configuration.
func (sut *systemUnderTest) reporterCommand(n *cluster.Node, kubeconfig, metrics string, is variant) (cluster.Command, error) {
	values := sut.commonValues(n.ReporterPlace, kubeconfig)
	values["contract"] = cmp.Or(is.form, values["contract"])
	values["metricsAddress"] = metrics
	values["node"] = n.Name
	values["connectivity"], values["alternatives"] = sut.connectivity(n), sut.alternatives(sut.e.scenario.Topology.Connectivity)
	values["publish"], values["aggregators"] = sut.publish(), strings.Join(n.ReporterPlace.Aggregators, ",")
	var sockets []string
	for _, k := range sut.e.operated.reported(n.Name, sut.e.encrypting.currentKeyIDs()) {
		sockets = append(sockets, contract.SocketPath(n.ReporterPlace.SocketDir, k))
	}
	values["sockets"] = strings.Join(sockets, ",")
	own := extended(sut.streams(), released(is, cluster.DefaultReporter), cluster.StreamingReporter)
	c, err := sut.command(cluster.CommandOr(sut.e.opts.Reporter.Command, own), values, "reporter-"+n.Name)
	if err != nil {
		return cluster.Command{}, fmt.Errorf("reporter of %s: %w", n.Name, err)
	}
	return c, nil
}

// released is the command of a program of this project, or of its previous release.
func released(is variant, template string) string {
	if !is.previous {
		return template
	}
	known, _, _ := strings.Cut(template, cluster.UnknownToPrevious)
	return cluster.PreviousRelease + known
}

func (sut *systemUnderTest) streams() bool {
	return sut.e.scenario.Topology.Connectivity == history.ConnectStream
}

func (sut *systemUnderTest) publish() string {
	if sut.streams() {
		return scenario.PublishStream
	}
	return scenario.PublishApply
}

// extended is a command template with what is added to it where a scenario asks for it: an image under test gets no more flags than it must know.
func extended(asked bool, template, added string) string {
	if asked {
		return template + added
	}
	return template
}

func (sut *systemUnderTest) connectivity(n *cluster.Node) string {
	switch {
	case n.ReporterPlace.InCluster != nil:
		return history.ConnectService
	case history.FailsOver(sut.e.scenario.Topology.Connectivity):
		return history.ConnectAltSvc
	}
	return history.ConnectLoopback
}

// choosesConnectivity reports whether the command of reporters has {connectivity}. A reporter without it uses its kubeconfig.
func (sut *systemUnderTest) choosesConnectivity() bool {
	return strings.Contains(cluster.CommandOr(sut.e.opts.Reporter.Command, cluster.DefaultReporter), "{connectivity}")
}

// alternatives are the static list of a program with a connectivity: the API servers that there are when it starts.
func (sut *systemUnderTest) alternatives(connectivity string) string {
	if connectivity != history.ConnectStatic {
		return ""
	}
	var all []string
	for _, n := range sut.e.kube().nodes() {
		all = append(all, n.Addr)
	}
	return strings.Join(all, ",")
}

// loopback is the API server of the node that an aggregator is on. Those that are on no node are spread over all of them.
func (sut *systemUnderTest) loopback(at cluster.Place, instance int) string {
	all := sut.e.kube().nodes()
	i := max(slices.IndexFunc(all, func(n *cluster.Node) bool { return n.Name == at.Node }), 0)
	if at.Node == "" {
		i = (instance - 1) % len(all)
	}
	return "https://" + all[i].Addr
}

// prepareAggregators makes a place for every replica.
func (sut *systemUnderTest) prepareAggregators() error {
	count := max(sut.e.scenario.Topology.Aggregators, 1)
	for i := range count {
		instance := i + 1
		at, way := sut.e.Places.AggregatorPlace(instance), sut.e.scenario.Topology.AggregatorConnectivity
		connectivity := history.ConnectService
		if history.FailsOver(way) {
			connectivity = history.ConnectAltSvc
		}
		if way == history.ConnectLoopback {
			at.Server = sut.loopback(at, instance)
		}
		kubeconfig, err := sut.kubeconfig(at, "aggregator", contract.AggregatorIdentity, nil)
		if err != nil {
			return err
		}
		identity := history.Process{Role: history.RoleAggregator, APIServer: sut.e.Name, Instance: instance}
		serving, err := sut.serving(at)
		if err != nil {
			return err
		}
		unit := at.Unit(identity, func(context.Context) (cluster.Command, error) {
			values := sut.commonValues(at, kubeconfig)
			values["instance"] = leaseIdentity(instance)
			values["connectivity"], values["alternatives"] = connectivity, sut.alternatives(way)
			values["leaderElect"] = strconv.FormatBool(count > 1)
			maps.Copy(values, serving)
			own := extended(sut.e.traits.Takeover == cluster.Takeover, released(sut.variant(identity), cluster.DefaultAggregator), cluster.QuickLease)
			own = extended(sut.e.scenario.Topology.AggregatorProfile != "", own, cluster.ProfiledAggregator)
			own = extended(sut.streams(), own, cluster.StreamingAggregator)
			return sut.command(cluster.CommandOr(sut.e.opts.Aggregator.Command, own), values, fmt.Sprintf("aggregator-%d", instance))
		})
		sut.e.aggregators = append(sut.e.aggregators, &cluster.Target{Unit: unit, Identity: identity})
	}
	return nil
}

// serving writes what an aggregator serves streams with, and gives it by placeholder. Where reporters do not stream, all of it is empty.
func (sut *systemUnderTest) serving(at cluster.Place) (map[string]string, error) {
	values := map[string]string{"streamAddress": "", "streamCertificate": "", "streamKey": "", "streamClientCA": ""}
	if !sut.streams() {
		return values, nil
	}
	cert, key, err := sut.e.controlPlane.Credentials.Serving(contract.AggregatorServerName, contract.AggregatorServerName)
	if err != nil {
		return nil, fmt.Errorf("serving certificate of the aggregator: %w", err)
	}
	clients, err := sut.e.controlPlane.Credentials.RESTConfig(contract.AggregatorIdentity, nil, at.Server)
	if err != nil {
		return nil, fmt.Errorf("authority of the reporters' certificates: %w", err)
	}
	values["streamAddress"] = at.StreamAddress
	for placeholder, file := range map[string]struct {
		name string
		text []byte
	}{"streamCertificate": {"aggregator-stream.crt", cert}, "streamKey": {"aggregator-stream.key", key}, "streamClientCA": {"reporters-ca.crt", clients.CAData}} {
		if values[placeholder], err = at.Write(file.name, file.text); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// leaseIdentity is how a replica signs its lease, so that the leader can be found.
func leaseIdentity(instance int) string { return fmt.Sprintf("aggregator-%d", instance) }

func (sut *systemUnderTest) commonValues(at cluster.Place, kubeconfig string) map[string]string {
	t := sut.e.traits.Timing
	return map[string]string{
		"kubeconfig": kubeconfig, "interval": t.Interval.String(), "jitter": t.Jitter.String(),
		"readTimeout": t.ProbeTimeout.String(), "writeTimeout": t.WriteTimeout.String(),
		"metricsAddress": at.MetricsAddress, "version": operand.Version, "podImage": cmp.Or(at.PodImage, "none"),
		"contract": cmp.Or(sut.e.scenario.Contract, "conditions"), "operator": sut.e.operator.Name,
		"aggregatorProfile": contract.AggregatorProfileOf(sut.e.scenario.Topology.AggregatorProfile).Name,
		"degradedInertia":   sut.e.scenario.ClusterOperator.Union().Inertia.String(),
		"clusterOperator":   map[bool]string{false: "unite", true: "leave"}[sut.e.scenario.ClusterOperator.Left],
	}
}

func (sut *systemUnderTest) command(text string, values map[string]string, log string) (cluster.Command, error) {
	t, err := command.Parse(text, undertest.Placeholders()...)
	if err != nil {
		return cluster.Command{}, err
	}
	program, args := t.Fill(values)
	return cluster.Command{Program: program, Args: args, LogFile: filepath.Join(sut.e.logDir, log+".log")}, nil
}

// kubeconfig writes a kubeconfig for an identity and gives its path as the program sees it.
func (sut *systemUnderTest) kubeconfig(at cluster.Place, name, user string, groups []string) (string, error) {
	text, err := sut.e.controlPlane.Credentials.Kubeconfig(user, groups, at.Server)
	if err != nil {
		return "", err
	}
	return at.Write(name+".kubeconfig", text)
}

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
	text, err := e.controlPlane.Credentials.Kubeconfig("kmsharness-admin", []string{"system:masters"}, e.controlPlane.ClientServer)
	if err == nil {
		err = os.WriteFile(kubeconfig, text, 0o600)
	}
	if err != nil {
		return Description{}, fmt.Errorf("kubeconfig of the administrator: %w", err)
	}
	d := Description{Kubeconfig: kubeconfig, RemoteKMS: e.controlPlane.KMS.Socket, Logs: e.logDir, ControlPlaneLogs: e.controlPlane.Recording.Logs()[0].Dir}
	for _, n := range e.kube().nodes() {
		described := NodeDescription{Name: n.Name, APIServer: n.URL}
		for _, g := range n.Plugins() {
			described.Plugins = append(described.Plugins, PluginDescription{g.KeyID, g.Socket, g.ControlSocket, g.Journal})
		}
		d.Nodes = append(d.Nodes, described)
	}
	return d, nil
}
