package controlplane

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/process"
)

// Options of a control plane.
type Options struct {
	Binaries assets.Binaries
	// Supervisor starts the processes; its owner closes it after the control plane.
	Supervisor *process.Supervisor
	// Dir is for the data, certificates and configuration; it exists and is private. The caller removes it.
	Dir string
	// LogDir receives the log of every process and the audit logs; it exists.
	LogDir string
	// AuditPolicy is the YAML of an audit.k8s.io/v1 Policy for all API servers; empty: nothing is audited.
	AuditPolicy []byte
	// EncryptionPoll is how often API servers look for a changed encryption configuration, if the binary can be told
	// (assets.Binaries.EncryptionPoll); 0 is the stock behaviour, one minute. In whole milliseconds.
	EncryptionPoll time.Duration
	// APIServerArgs are further flags of every API server, also of aggregated ones; a later flag wins.
	APIServerArgs []string
	// Aggregation lets the API servers pass requests on to aggregated ones (ControlPlane.AddAggregated).
	Aggregation bool
	// Alternatives puts a proxy in front of each API server (APIServer.FrontAddr) that adds the Alt-Svc field with all ready ones. It needs
	// Aggregation, by which API servers believe a proxy.
	Alternatives bool
	// Servers are there from the beginning.
	Servers []ServerSpec
}

type ServerSpec struct {
	// Name is that of its node ("cp-1"): letters, digits, '.' and '-', at most 63.
	Name string
	// Encryption is its configuration; the zero value encrypts nothing.
	Encryption Encryption
}

func (o Options) validate() error {
	switch {
	case o.Binaries.Etcd == "" || o.Binaries.KubeAPIServer == "":
		return errors.New("control plane: the paths of etcd and kube-apiserver are missing: see assets.Ensure")
	case o.Supervisor == nil:
		return errors.New("control plane: a supervisor is missing")
	case o.Dir == "" || o.LogDir == "":
		return errors.New("control plane: the directories for data and logs are missing")
	case o.Alternatives && !o.Aggregation:
		return errors.New("control plane: Alternatives needs Aggregation")
	case o.EncryptionPoll < 0:
		return fmt.Errorf("control plane: the encryption poll is %v, expected 0 or more", o.EncryptionPoll)
	}
	return nil
}

var validName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$`)

func (s ServerSpec) validate() error {
	if !validName.MatchString(s.Name) {
		return fmt.Errorf("API server %q: expected a name of letters, digits, '.' and '-', at most 63", s.Name)
	}
	return nil
}
