package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

// proxyProgram runs in a node's container while a link is slow or mute.
const proxyProgram = "kmsharness-proxy"

// uidProxy is the user of proxies, so that their own connections can be told from those that are turned to them.
const uidProxy = 65531

// proxyTimeout bounds the start and the end of a proxy, which take as long as the engine takes to run a command.
const proxyTimeout = 20 * time.Second

// proxyName names the proxy of a link in a node's state folder; its file says where it accepts.
func (w way) proxyName() string { return "proxy-" + w.link.From + "-" + w.link.To }
func (w way) proxyFile() string { return w.proxyName() + ".addr" }

// proxyCommand is what starts the proxy; its mistakes are in its log, for nobody waits for it.
func (w way) proxyCommand(f netfault.Fault) []string {
	words := []string{filepath.Join(inNodeShared, proxyProgram), "--listen", ":0", "--upstream", w.upstream,
		"--ready", inNode(w.proxyFile()), "--fault", string(f.Mode)}
	if f.Delay != 0 {
		words = append(words, "--delay", f.Delay.String())
	}
	return append([]string{"sh", "-c", `exec "$@" 2>` + inNode(logFile(w.proxyName())), "sh"}, words...)
}

// startProxy starts the proxy of a link on a node and gives its port.
func (p *plane) startProxy(ctx context.Context, w way, f netfault.Fault) (port string, err error) {
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	state, user := p.layout.node(w.node), fmt.Sprintf("%d:%d", uidProxy, uidProxy)
	if err := os.Remove(state.file(w.proxyFile())); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that ended with its node
		return "", err
	}
	if _, err := docker(ctx, append([]string{"exec", "--detach", "--user", user, w.container}, w.proxyCommand(f)...)...); err != nil {
		return "", fmt.Errorf("proxy on %s: %w", w.node, err)
	}
	err = until(ctx, readyPoll, "start the proxy on "+w.node, func(context.Context) error {
		text, err := os.ReadFile(state.file(w.proxyFile()))
		if err != nil {
			said, _ := os.ReadFile(state.file(logFile(w.proxyName()))) // more words for the error, if there are any
			return fmt.Errorf("%w %s", err, strings.TrimSpace(string(said)))
		}
		_, port, err = net.SplitHostPort(string(text))
		return err
	})
	return port, err
}

// stopProxy ends the proxy of a link on a node; when it returns its connections have been reset.
func (p *plane) stopProxy(ctx context.Context, w way) error {
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	if _, err := inside(ctx, w.container, nil, "pkill", "-TERM", "-U", fmt.Sprint(uidProxy), "-f", inNode(w.proxyFile())); err != nil {
		return fmt.Errorf("end the proxy on %s, which should run: %w", w.node, err)
	}
	return until(ctx, readyPoll, "end the proxy on "+w.node, func(context.Context) error {
		if _, err := os.Stat(p.layout.node(w.node).file(w.proxyFile())); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("its connections are still there (%v)", err)
		}
		return nil
	})
}
