package plugin

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// Connects is the id of the check without which no other can run.
const Connects = "KMS2-TRANSPORT-CONNECTS"

func connects() Check {
	return Check{
		Check: conformance.Check{
			ID: Connects, Profile: conformance.Core,
			Title:       "accepts gRPC connections",
			Rule:        "The plugin serves gRPC, that is HTTP/2 without TLS, on its unix socket.",
			Source:      sourceDocs + ": a gRPC server that listens at a UNIX domain socket; " + sourceClient + ": NewGRPCService dials with insecure credentials",
			Consequence: "No call of kube-apiserver succeeds: each waits for a connection and ends with DeadlineExceeded.",
		},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			p.conn.ResetConnectBackoff()
			p.conn.Connect()
			for state := p.conn.GetState(); state != connectivity.Ready; state = p.conn.GetState() {
				if !p.conn.WaitForStateChange(ctx, state) {
					return found("a gRPC connection to "+p.at.String(), fmt.Sprintf("in state %v after %v", state, p.timing.Call), "the plugin's HTTP/2 settings, so that the connection is ready")
				}
			}
			return nil
		},
	}
}

func authorityAccepted() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-AUTHORITY", Profile: conformance.Core,
			Title:       ":authority localhost is accepted",
			Rule:        "The plugin answers calls with the :authority \"localhost\".",
			Source:      sourceClient + ": NewGRPCService, grpc.WithAuthority(\"localhost\")",
			Consequence: "Every call of kube-apiserver fails.",
		},
		After: []string{Connects},
		Run: func(ctx context.Context, p *Plugin) error {
			_, refused := p.Status(ctx)
			if refused == nil {
				return nil
			}
			// Status may fail for other reasons, which KMS2-STATUS-ANSWERS reports.
			if _, err := statusOnNew(ctx, p, grpc.WithAuthority("kms")); err == nil {
				return found("Status with :authority localhost", refused, "a response, as with another :authority")
			}
			return nil
		},
	}
}

// otherAuthority is about clients that are not kube-apiserver: the rule only excludes a hang and damage.
func otherAuthority() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-AUTHORITY-OTHER", Profile: conformance.Robustness,
			Title:       "another :authority gets an answer",
			Rule:        "A call with another :authority than localhost is answered or refused, within the timeout of a call.",
			Source:      "RFC 9113, 8.3.1: the server serves the request for the :authority, or refuses it (8.1.1)",
			Consequence: "Health probes and debugging tools, which send other names than kube-apiserver, hang.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, name := range []string{"kms", "kms.example.com:8080"} {
				if _, err := statusOnNew(ctx, p, grpc.WithAuthority(name)); err != nil && gone(err) {
					return found("Status with :authority "+name, err, "a response, or an error that refuses the call")
				}
			}
			return othersServed(ctx, p, "after calls with another :authority")
		},
	}
}

// SecondConnection is the id of the check on which all checks that open connections depend.
const SecondConnection = "KMS2-TRANSPORT-SECOND-CONNECTION"

func secondConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: SecondConnection, Profile: conformance.Extended,
			Title:       "several connections at once",
			Rule:        "The plugin serves a further connection while others are open.",
			Source:      sourceConfig + ": kmsPrefixTransformer opens a connection for each configuration, and a reload closes the old ones only after a grace period",
			Consequence: "A reload of the EncryptionConfiguration fails, because the new configuration never becomes healthy, and the old one stays in use.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			first, endFirst, err := newClient(p)
			if err != nil {
				return err
			}
			defer endFirst()
			second, endSecond, err := newClient(p)
			if err != nil {
				return err
			}
			defer endSecond()
			for _, c := range []struct {
				name   string
				client kmsapi.KeyManagementServiceClient
			}{{"the first", first}, {"a second", second}, {"the first", first}} {
				if err := statusOf(ctx, p, c.client); err != nil {
					return found("Status on "+c.name+" of two further connections", err, "a response")
				}
			}
			return nil
		},
	}
}

func statusSameEverywhere() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-SAME-ON-EACH-CONNECTION", Profile: conformance.Extended,
			Title:       "each connection sees one key_id",
			Rule:        "Status returns the same key_id on each connection.",
			Source:      sourceKEP + ": the key_id of Status is authoritative for the plugin",
			Consequence: "After each reconnect kube-apiserver takes the key for rotated, and all stored objects become stale.",
		},
		After: []string{SecondConnection, "KMS2-STATUS-KEY-ID-CONSTANT"},
		Run: func(ctx context.Context, p *Plugin) error {
			first, err := p.Status(ctx)
			if err != nil {
				return found("Status", err, "a response")
			}
			for n := range 5 {
				resp, err := p.statusOnce(ctx)
				if err != nil {
					return found(fmt.Sprintf("Status on a new connection, the %d.", n+1), err, "a response")
				}
				if resp.KeyId != first.KeyId {
					return found(fmt.Sprintf("Status on a new connection, the %d.", n+1), resp, "key_id "+quote(first.KeyId)+" as on the first connection")
				}
			}
			return nil
		},
	}
}

func socketPermissions() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-SOCKET-PERMISSIONS", Profile: conformance.Robustness,
			Title:       "others cannot use the socket",
			Rule:        "Not every user of the machine can connect to the socket: its mode, or that of a folder above it, denies it to others.",
			Source:      sourceDocs + ": a socket file has an ACL, unlike an abstract socket; unix(7): to connect takes write permission on the socket and search permission on its folders",
			Consequence: "kube-apiserver does not notice. Every local user can call Decrypt, with what is in etcd or in its backups.",
			Needs:       []conformance.Capability{SocketFile},
		},
		Run: func(_ context.Context, p *Plugin) error {
			path, err := filepath.EvalSymlinks(p.at.Address)
			if err != nil {
				return err
			}
			open, err := has(path, 0o002)
			for dir := filepath.Dir(path); err == nil && open; dir = filepath.Dir(dir) {
				if open, err = has(dir, 0o001); dir == filepath.Dir(dir) {
					break
				}
			}
			if err != nil || !open {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return found("the mode of "+path, fmt.Sprintf("%v, and all folders above it can be searched by others", info.Mode()), "no write permission for others, or a folder that is closed to them")
		},
	}
}

// has reports whether the mode of a file has all of some bits.
func has(path string, bits fs.FileMode) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return info.Mode().Perm()&bits == bits, nil
}

// idle is the id of the check on which those of partial input depend.
const idle = "KMS2-TRANSPORT-IDLE-CONNECTION"

func idleConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: idle, Profile: conformance.Robustness,
			Title:       "an idle connection blocks nobody",
			Rule:        "A connection on which nothing is sent does not delay others.",
			Source:      sourceDocs + ": timeout, by default 3 s, for each call, whatever other clients of the socket do",
			Consequence: "A client that opens the socket and sends nothing, such as a probe that only connects, stops all encryption.",
		},
		After: []string{SecondConnection},
		Run:   written("an idle connection", ""),
	}
}

// written returns a check that writes bytes on a connection of its own, and tests that others are served while it is open and after its end.
func written(what, bytes string) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		w, err := dialWire(ctx, p)
		if err != nil {
			return err
		}
		defer w.end()
		if bytes != "" {
			_, _ = w.Write([]byte(bytes)) // the plugin may close the connection at any byte
		}
		if err := othersServed(ctx, p, "while there is "+what); err != nil {
			return err
		}
		w.end()
		return othersServed(ctx, p, "after "+what+" was closed")
	}
}

// dropped is how many connections are dropped in mid-call.
const dropped = 20

func droppedConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-DROPPED-CONNECTION", Profile: conformance.Extended,
			Title:       "a dropped connection harms nobody",
			Rule:        "When a client closes its connection in mid-call, the plugin goes on serving others.",
			Source:      sourceClient + ": NewGRPCService closes the connection when its context ends, at a reload and at the end of kube-apiserver",
			Consequence: "A restart of kube-apiserver, or a reload of its EncryptionConfiguration, ends the plugin for everybody.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			for i := range dropped {
				f, err := dialFrames(ctx, p)
				if err != nil {
					return found(fmt.Sprintf("connection %d, after as many were closed in mid-call", i+1), err, "a connection")
				}
				if _, err := f.status(); err == nil {
					// The first byte is that of the plugin's settings: it has accepted. What else it sent is unread, which resets the connection.
					_, _ = io.ReadFull(f, make([]byte, 1))
				}
				_ = f.Close()
			}
			return othersServed(ctx, p, fmt.Sprintf("after %d connections were closed in mid-call", dropped))
		},
	}
}
