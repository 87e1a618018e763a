package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/undertest"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
)

// trials start plugins for checks of what they are configured with.
type trials struct {
	e      *apiServer
	logIns *pluginLogIns
	count  atomic.Int64
}

const (
	// checkTimeout bounds a pre-flight check: long enough for a plugin to start on a busy machine. operatorCheckTimeout is how long the operator waits
	// for it: also for a cluster that notices the pod late, and a result that is seen late. Both are multiplied by the operator's patience.
	checkTimeout         = 8 * time.Second
	operatorCheckTimeout = 12 * time.Second
	// checkReserve is for a program that starts and writes its result, and checkPoll is how often its end is looked for.
	checkReserve = 2 * time.Second
	checkPoll    = 50 * time.Millisecond
)

// patient is a time of a pre-flight check for an operator under test: a program may have longer time-outs of its own than this project's, and no flag
// for them.
func patient(d time.Duration, o undertest.Operator) time.Duration {
	return d * time.Duration(max(o.Patience, 1))
}

// Check implements operand.Pods. It takes little more than checkTimeout.
func (p *trials) Check(ctx context.Context, pod *corev1.Pod, c config.Plugin) corev1.ContainerStateTerminated {
	if why := operand.CannotStart("", c.Image); why != "" {
		return corev1.ContainerStateTerminated{ExitCode: notRun, Message: why}
	}
	ctx, cancel := context.WithTimeout(ctx, patient(checkTimeout, p.e.opts.Operator)+checkReserve)
	defer cancel()
	end, err := p.check(ctx, pod, c)
	if err != nil {
		return corev1.ContainerStateTerminated{ExitCode: notRun, Message: contract.SafeDetail(err.Error())}
	}
	return corev1.ContainerStateTerminated{ExitCode: int32(end.Exit.Code), Message: endOf(end)}
}

// notRun is the exit code of a program that has not run, or not to its end, as that of a container which could not be started.
const notRun = 128

// endOf is how the program of a check ended, and the last that it wrote: a wrong command is found by that.
func endOf(s cluster.Status) string {
	why := s.Exit.String()
	if last := contract.SafeDetail(s.Output); last != "" {
		why += ": " + last
	}
	return why
}

// check starts a plugin process of its own, on no node, and runs the program of a pre-flight pod beside it until that ends: how it ended
// is the result.
func (p *trials) check(ctx context.Context, pod *corev1.Pod, c config.Plugin) (end cluster.Status, err error) {
	keyID := fmt.Sprintf("try-%d", p.count.Add(1))
	if err := p.logIns.introduce(ctx, cluster.Preflight, keyID, c); err != nil {
		return end, err
	}
	g, err := p.e.Plugins.TryPlugin(ctx, keyID)
	if err != nil {
		return end, err
	}
	program := g.Beside.Unit(history.Process{Role: history.RolePreflight, Node: cluster.Preflight, KeyID: keyID}, func(context.Context) (cluster.Command, error) { return p.program(pod, g) })
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.StartTimeout)
		defer cancel()
		_ = errors.Join(program.Kill(ctx), g.Close(ctx)) // what does not end is ended with the plane
	}()
	if err := p.e.recorder.FollowPlugin(g, tail.FromStart); err != nil {
		return end, err
	}
	p.e.changes.recordReady(&g.Target)
	if err := program.Start(ctx); err != nil {
		return end, err
	}
	ticker := time.NewTicker(checkPoll)
	defer ticker.Stop()
	for {
		if end = program.Status(); end.Phase == cluster.Ended {
			return end, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return end, fmt.Errorf("the check of plugin %s has not ended: %w", keyID, context.Cause(ctx))
		}
	}
}

// program is the command of the pod's program. It reaches the API as clients of the cluster do, with an administrator's rights.
func (p *trials) program(pod *corev1.Pod, g *cluster.Plugin) (cluster.Command, error) {
	at := g.Beside
	at.Server = p.e.controlPlane.ClientServer
	kubeconfig, err := p.e.sut.kubeconfig(at, history.RolePreflight, operandUser, []string{"system:masters"})
	if err != nil {
		return cluster.Command{}, err
	}
	socket, mounts := g.Socket, []process.Mount(nil)
	if p.e.opts.Operator.MountSockets {
		if socket, mounts, err = mountedSocket(at.Dir, g); err != nil {
			return cluster.Command{}, err
		}
	}
	values := p.e.sut.commonValues(at, kubeconfig)
	values["sockets"], values["callTimeout"], values["checkTimeout"] = "unix://"+socket, (checkTimeout / 3).String(), patient(checkTimeout, p.e.opts.Operator).String()
	values["podName"], values["podNamespace"], values["configHash"] = pod.Name, pod.Namespace, pod.Annotations[lifecycle.PreflightHash]
	c, err := p.e.sut.command(cluster.CommandOr(p.e.opts.Operator.Preflight, cluster.DefaultPreflight), values, history.RolePreflight+"-"+g.KeyID)
	c.Mounts = mounts
	return c, err
}

// mountedSocket is the plugin's socket as in a pre-flight pod, whose plugin has the keyID 1, with the mount for it: a folder with a link, because the
// plugin's own folder has the sockets of all checks, and other names.
func mountedSocket(dir string, g *cluster.Plugin) (string, []process.Mount, error) {
	folder := filepath.Join(dir, "mount-"+g.KeyID)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, fmt.Errorf("folder of sockets: %w", err)
	}
	// A link of an earlier scenario is the same: the folder is the control plane's.
	if err := os.Symlink(g.Socket, cluster.HostSocket(folder, podKeyID)); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", nil, fmt.Errorf("link of its socket: %w", err)
	}
	return cluster.HostSocket(contract.SocketDir, podKeyID), []process.Mount{{From: folder, At: contract.SocketDir}}, nil
}

// podKeyID is the plugin's in a pre-flight pod.
const podKeyID = "1"
