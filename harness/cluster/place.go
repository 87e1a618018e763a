package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// ServiceAccountDir is where a program in a pod finds its service account.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster is what a place has whose program runs as in a pod: the in-cluster configuration of client-go, with the service account of the pod.
type InCluster struct {
	// Dir is the volume with the service account, of this machine. The program sees it at ServiceAccountDir.
	Dir string
	// AccountKey is the key with which API servers sign the tokens of service accounts, in PEM.
	AccountKey func() ([]byte, error)
}

// Places are where programs of the system under test run that are on no node.
type Places interface {
	// AggregatorPlace is that of the i-th replica of the aggregator, from 1.
	AggregatorPlace(i int) Place
	OperatorPlace() Place
}

// Place is where a program of the system under test runs.
type Place struct {
	// Server is the URL of its API server, as the program sees it.
	Server string
	// Node is the node that an aggregator's pod is on; empty: none.
	Node string
	// Dir is a folder of this machine; the program sees it as SeenDir.
	Dir, SeenDir string
	// Mode of files with credentials in Dir; 0 is 0600.
	Mode fs.FileMode
	// SocketDir has the plugins' sockets, as the program sees it.
	SocketDir string
	// StreamAddress is what an aggregator is told to serve streams on, and Aggregators where a reporter finds its replicas; empty where reporters do not stream.
	StreamAddress string
	Aggregators   []string
	// MetricsAddress is what the program is told to serve on, MetricsURL where the harness finds it; empty: nowhere.
	MetricsAddress, MetricsURL string
	// LogFile is where the output of the program is on this machine; empty: in that of its command.
	LogFile string
	// PodImage is the image of pods that the program creates, for a whole operator; empty: nothing runs them.
	PodImage string
	// InCluster is set where the program runs as in a pod.
	InCluster *InCluster
	// Put brings a file with credentials to where the program sees it, under a name in SeenDir; nil: Dir is that place.
	Put func(name string, text []byte) error
	// Unit makes a place for the program; command is asked at every start.
	Unit func(identity history.Process, command func(context.Context) (Command, error)) Unit
}

type Command struct {
	Program string
	Args    []string
	LogFile string // of this machine
	// Mounts are besides those of its Place, which must be PlaceOn's.
	Mounts []process.Mount
}

// Write replaces a file with credentials, and gives its path as the program sees it.
func (p Place) Write(name string, text []byte) (string, error) {
	if p.Put != nil {
		if err := p.Put(name, text); err != nil {
			return "", fmt.Errorf("write credentials: %w", err)
		}
		return filepath.Join(p.SeenDir, name), nil
	}
	file := filepath.Join(p.Dir, name)
	if err := atomicfile.Write(file, text, cmp.Or(p.Mode, 0o600)); err != nil {
		return "", fmt.Errorf("write credentials: %w", err)
	}
	return filepath.Join(p.SeenDir, name), nil
}

// Nowhere is the metrics address of a reporter beside another, which has the port that is read: on nodes each has an address of its own.
const Nowhere = "127.0.0.1:0"
