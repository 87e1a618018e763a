package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	kmsapi "k8s.io/kms/apis/v2"
)

func connects(ctx context.Context, p *Plugin) error {
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
}

func authorityAccepted(ctx context.Context, p *Plugin) error {
	_, refused := p.Status(ctx)
	if refused == nil {
		return nil
	}
	// Status may fail for other reasons, which KMS2-STATUS-ANSWERS reports.
	if _, err := p.statusOnNew(ctx, grpc.WithAuthority("kms")); err == nil {
		return found("Status with :authority localhost", refused, "a response, as with another :authority")
	}
	return nil
}

// otherAuthority is about clients that are not kube-apiserver: the rule only excludes a hang and damage.
func otherAuthority(ctx context.Context, p *Plugin) error {
	for _, name := range []string{"kms", "kms.example.com:8080"} {
		if _, err := p.statusOnNew(ctx, grpc.WithAuthority(name)); err != nil && gone(err) {
			return found("Status with :authority "+name, err, "a response, or an error that refuses the call")
		}
	}
	return othersServed(ctx, p, "after calls with another :authority")
}

func secondConnection(ctx context.Context, p *Plugin) error {
	var others [2]*client
	for i := range others {
		other := need(p.another())
		defer other.conn.Close()
		others[i] = other
	}
	return each([]int{0, 1, 0}, func(i int) error {
		_, err := others[i].answer(ctx, fmt.Sprintf("Status on connection %d of two further ones", i+1))
		return err
	})
}

func statusSameEverywhere(ctx context.Context, p *Plugin, first *kmsapi.StatusResponse) error {
	for n := range 5 {
		resp, err := p.statusOnNew(ctx)
		if err != nil {
			return found(fmt.Sprintf("Status on a new connection, the %d.", n+1), err, "a response")
		}
		if resp.KeyId != first.KeyId {
			return found(fmt.Sprintf("Status on a new connection, the %d.", n+1), resp, "key_id "+quote(first.KeyId)+" as on the first connection")
		}
	}
	return nil
}

func socketPermissions(_ context.Context, p *Plugin) error {
	path := need(filepath.EvalSymlinks(p.at.Address))
	mode := need(os.Stat(path)).Mode()
	open := mode.Perm()&0o002 != 0
	for dir := path; open && dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		open = need(os.Stat(dir)).Mode().Perm()&0o001 != 0
	}
	if !open {
		return nil
	}
	return found("the mode of "+path, fmt.Sprintf("%v, and all folders above it can be searched by others", mode), "no write permission for others, or a folder that is closed to them")
}

// written returns a check that writes bytes on a connection of its own, and tests that others are served while it is open and after its end.
func written(what, bytes string) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		w := need(dialWire(ctx, p))
		defer w.end()
		if bytes != "" {
			_, _ = w.Write([]byte(bytes)) // the plugin may close the connection at any byte
		}
		must(othersServed(ctx, p, "while there is "+what))
		w.end()
		return othersServed(ctx, p, "after "+what+" was closed")
	}
}

// dropped is how many connections are dropped in mid-call.
const dropped = 20

func droppedConnection(ctx context.Context, p *Plugin) error {
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
}

func ping(_ context.Context, p *Plugin, f *frames) error {
	if err := f.ping([8]byte(p.Bytes(8))); err != nil {
		return found("an HTTP/2 PING", err, "its acknowledgement")
	}
	return nil
}

// pingedCalls is how many calls with a ping each are made.
const pingedCalls = 20

func pingsWithCalls(_ context.Context, p *Plugin, f *frames) error {
	for i := range pingedCalls {
		err := f.call()
		if err == nil {
			err = f.ping([8]byte(p.Bytes(8)))
		}
		if err != nil {
			return found(fmt.Sprintf("Status and a PING, %d times on a connection", i+1), err, "an answer and the acknowledgement")
		}
		must(f.extend(p))
	}
	return nil
}
