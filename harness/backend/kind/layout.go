package kind

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Folders of a node, as it and the pods on it see them.
const (
	inNodeState  = "/var/lib/kmsharness"        // files and sockets of this node
	inNodeShared = "/var/lib/kmsharness-shared" // files and sockets of all nodes of the plane
	inNodeImages = inNodeShared + "/images"     // archives of the images under test
	inNodeSocket = contract.SocketDir           // the plugins' sockets
)

// supervisorProgram is the program below which everything under test runs.
const supervisorProgram = "kmsharness-supervisor"

// layout says where the files of a plane are on this machine. Paths are short, because socket paths must be.
type layout struct{ dir string }

func (l layout) shared() string              { return filepath.Join(l.dir, "s") }
func (l layout) images() string              { return filepath.Join(l.shared(), "images") }
func (l layout) node(name string) nodeLayout { return nodeLayout{filepath.Join(l.dir, name)} }
func (l layout) logs() string                { return filepath.Join(l.dir, "logs") }

// deployed is the folder of the files that the supervisors of the Deployments of a role have, on all nodes. It is theirs alone, as that of a unit under test.
func (l layout) deployed(role string) podFiles { return podFiles{l.shared(), inNodeShared}.sub(role) }

// deployedConfig is the folder of what the programs of the Deployments of a role read.
func (l layout) deployedConfig(role string) podFiles {
	return podFiles{l.shared(), inNodeShared}.sub(role + "-config")
}

// pluginsUnderTest is the folder of what plugins under test share over all nodes.
func (l layout) pluginsUnderTest() podFiles {
	return podFiles{l.shared(), inNodeShared}.sub(cluster.PluginShared)
}

// sharedLogs are the folders with logs that belong to no node.
func (l layout) sharedLogs() []cluster.LogDir {
	all := []cluster.LogDir{{Dir: l.logs()}, {Dir: l.shared()}}
	for _, role := range deployedRoles() {
		all = append(all, cluster.LogDir{Dir: l.deployed(role).dir})
	}
	return all
}

// preflight has the sockets of plugins that an operator tries.
func (l layout) preflight(apiServer string) string { return filepath.Join(l.dir, "p", apiServer) }

type nodeLayout struct{ dir string }

func (n nodeLayout) state() string   { return filepath.Join(n.dir, "state") }
func (n nodeLayout) sockets() string { return filepath.Join(n.dir, "kms") }

// file is in the node's state folder, on this machine; inNode is the same as the node sees it.
func (n nodeLayout) file(name string) string { return filepath.Join(n.state(), name) }
func inNode(name string) string              { return filepath.Join(inNodeState, name) }

// podFiles is the folder of the files of an API server's pod on a node, on this machine and as the pod sees it.
type podFiles struct{ dir, seen string }

// pod is that of kube-apiserver, or of a further API server.
func (n nodeLayout) pod(apiServer string) podFiles {
	return podFiles{filepath.Join(n.state(), apiServer), filepath.Join(inNodeState, apiServer)}
}

// of is the folder of the files that the supervisor of a unit of the pod has. That of a unit under test is its own and the supervisor's alone: the
// container mounts it, and the program, which is another user, cannot enter it.
func (f podFiles) of(unit string) podFiles {
	if !isUnderTest(unit) {
		return f
	}
	return f.sub(unit)
}

func (f podFiles) sub(name string) podFiles { return podFiles{f.file(name), f.in(name)} }

// config is the folder of what the reporter reads.
func (f podFiles) config() podFiles { return f.sub("config") }

func (f podFiles) unit(name string) unitKey { return unitKey{f.of(name).dir, name} }

// account is the folder of the reporter's service account.
func (f podFiles) account() podFiles { return f.config().sub("account") }

// make makes the folders.
func (f podFiles) make() error {
	return errors.Join(os.MkdirAll(f.account().dir, 0o755), os.MkdirAll(f.of(unitReporter).dir, 0o700))
}

// logs are the folders with logs of the pod.
func (f podFiles) logs(prefix string) []cluster.LogDir {
	all := []cluster.LogDir{{Dir: f.dir, Prefix: prefix}, {Dir: f.of(unitReporter).dir, Prefix: prefix}}
	behind, _ := filepath.Glob(f.file("*" + suffixUnderTest)) // the pattern is a good one
	for _, dir := range behind {
		all = append(all, cluster.LogDir{Dir: dir, Prefix: prefix})
	}
	return all
}

func (f podFiles) file(name string) string { return filepath.Join(f.dir, name) }
func (f podFiles) in(name string) string   { return filepath.Join(f.seen, name) }

// supervisorSocket is short: the path of a socket has at most 107 bytes, and the folder of a unit under test has its whole name already.
func supervisorSocket(unit string) string { return strings.TrimSuffix(unit, suffixUnderTest) + ".sock" }

// Names of files in a node's state folder, by the unit that they belong to.
func controlSocket(keyID string) string    { return "ctl-" + keyID + ".sock" } // of the plugin's control API
func commandFile(unit string) string       { return unit + ".json" }
func supervisorJournal(unit string) string { return "supervisor-" + unit + ".jsonl" }
func logFile(unit string) string           { return unit + ".log" }

// Files of a node that belong to no unit.
const (
	realSockets    = "real" // folder of the sockets of plugins under test
	auditLog       = "audit.jsonl"
	auditPolicy    = "audit-policy.yaml"
	encryptionFile = "encryption.yaml"
)

// credentials are read by users of several containers, and nobody else can reach the folder that they are in.
const credentials = 0o644

// unitOfPlugin names a container for plugins by the keyID that is at home there. Others may be in it as well: see slot.
func unitOfPlugin(keyID string) string { return "plugin-" + keyID }

// unitUnderTest names the container for the plugin under test that stands behind one for plugins.
func unitUnderTest(unit string) string { return unit + suffixUnderTest }

const suffixUnderTest = "-under-test"

// isUnderTest reports whether the program of a unit of an API server's pod is judged: the fake plugins and the API servers are not.
func isUnderTest(unit string) bool {
	return unit == unitReporter || strings.HasSuffix(unit, suffixUnderTest)
}

// deployedRoles are the roles of the programs of Deployments under test.
func deployedRoles() []string { return []string{history.RoleAggregator, history.RoleOperator} }

// Names of the other units.
const (
	unitReporter  = "reporter"
	unitAPIServer = "apiserver"
)

// containerName is the name of the container in which a unit of the API server's pod is, as OpenShift has it.
func containerName(unit string) string {
	switch {
	case unit == unitReporter:
		return "kms-health-reporter"
	case strings.HasPrefix(unit, unitOfPlugin("")):
		return "vault-kms-" + unit
	}
	return unit
}

// contained returns an error if the image of a program of this project does not have another one.
func contained(program, replaced string) error {
	if inImage(program) == inImage(replaced) {
		return nil
	}
	return fmt.Errorf("it would run in this project's image, which has %s only: expected that, or for a reporter of your own reporter.image", inImage(replaced))
}

// inImage is where the images of this project have their program.
func inImage(program string) string {
	if program == "" || program[0] == '/' {
		return program
	}
	return "/" + program
}
