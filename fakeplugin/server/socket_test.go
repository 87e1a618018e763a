package server

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/internal/host"
)

// connectAsNobody connects as a user without privileges, from a thread that is thrown away with its identity.
func connectAsNobody(path string) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the runtime ends the thread with the goroutine
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			result <- errno
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			result <- err
			return
		}
		defer unix.Close(fd)
		result <- unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}()
	return <-result
}

func TestSocketPermissions(t *testing.T) {
	w := newWorld(t)
	mode := func() os.FileMode {
		info, err := os.Stat(w.at.Address)
		w.Expect(err).NotTo(HaveOccurred())
		return info.Mode().Perm()
	}
	w.Expect(mode()).To(Equal(endpoint.DefaultMode))
	release := w.inject("socket-permissions:mode=0666")
	w.Expect(mode()).To(Equal(os.FileMode(0o666)))
	if os.Getuid() == 0 {
		w.Expect(connectAsNobody(w.at.Address)).To(Succeed())
	}
	release()
	release = w.inject("socket-permissions")
	w.Expect(mode()).To(BeZero())
	if os.Getuid() == 0 {
		w.Expect(connectAsNobody(w.at.Address)).To(MatchError(unix.EACCES))
	} else {
		_, err := w.at.Dial(t.Context(), host.Host{})
		w.Expect(err).To(MatchError(os.ErrPermission))
	}
	release()
	w.Expect(mode()).To(Equal(endpoint.DefaultMode))
	w.healthy()
}

func TestExistingConnectionsMayBeKept(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	for _, flag := range []string{"socket-removed:existing=keep", "socket-replaced:with=file,existing=keep", "refuse-connections:existing=keep"} {
		release := w.inject(flag)
		w.Expect(w.judge(w.client, deadline)).To(Succeed(), flag)
		w.Expect(w.judge(w.dial(), patience)).NotTo(Succeed(), flag)
		release()
	}
	w.healthy()
}

func TestSocketReplacedByANewOne(t *testing.T) {
	w := newWorld(t)
	changed := func() int64 {
		var st unix.Stat_t
		w.Expect(unix.Stat(w.at.Address, &st)).To(Succeed())
		return st.Ctim.Nano() // inode numbers are used again at once
	}
	before := changed()
	defer w.inject("socket-replaced:with=new")()
	w.Expect(changed()).NotTo(Equal(before))
	w.healthy()
}

func (w *world) Socket() fault.File { return w.server.State().Socket }

func TestSocketFaultsCombineAndExpire(t *testing.T) {
	w := newWorld(t)
	removed := w.inject("socket-removed")
	stale := w.inject("socket-stale")
	w.inject("slow-start:how=silent,for=50ms")
	w.Expect(w.Socket()).To(Equal(fault.FileMissing))
	removed()
	stale()
	w.Eventually(w.Socket).WithTimeout(deadline).Should(Equal(fault.FileServed))
	w.Expect(w.server.Faults()).To(BeEmpty())
	w.healthy()
}

func TestSlowStartFromTheBeginning(t *testing.T) {
	w := newWorldAt(t, endpoint.Endpoint{Network: "unix", Address: openDir(t) + "/kms-1.sock"}, "slow-start:for=100ms")
	_, err := w.at.Dial(t.Context(), host.Host{})
	w.Expect(err).To(MatchError(os.ErrNotExist))
	w.healthy()
}

func TestCrashExits(t *testing.T) {
	w := newWorld(t)
	w.inject("crash:how=exit,exit-code=42")
	w.Eventually(w.exited).WithTimeout(deadline).Should(ContainElement(42))
	_, err := os.Stat(w.at.Address)
	w.Expect(err).NotTo(HaveOccurred(), "a crash leaves a stale socket")
}

func TestAbstractSocket(t *testing.T) {
	at := endpoint.Endpoint{Network: "unix", Address: "@kms-" + t.Name() + time.Now().Format("150405.000000")}
	w := newWorldAt(t, at)
	w.healthy()
	for _, flag := range []string{"socket-removed", "socket-stale", "socket-replaced", "crash"} {
		release := w.inject(flag)
		w.Expect(w.judge(w.dial(), patience)).NotTo(Succeed(), flag)
		release()
		w.healthy()
	}
	for _, flag := range []string{"socket-permissions", "socket-replaced:with=file"} {
		_, err := w.server.Inject(w.parse(flag))
		w.Expect(err).To(MatchError(ContainSubstring("needs a socket file")), flag)
	}
}

func TestAnotherProcessOnTheSocket(t *testing.T) {
	g := NewWithT(t)
	at := endpoint.Endpoint{Network: "unix", Address: openDir(t) + "/kms-1.sock"}
	other, err := net.Listen("unix", at.Address)
	g.Expect(err).NotTo(HaveOccurred())
	defer other.Close()
	w := newWorld(t)
	second := New(Options{Listen: at, KeyID: "1", Plugin: &plugin.Service{Plugin: w.plugin}})
	g.Expect(second.Start()).To(MatchError(ContainSubstring("another process serves")))
}

func TestStopLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.inject("hang")
	ctx, stop := context.WithCancel(t.Context())
	second := New(Options{Listen: endpoint.Endpoint{Network: "unix", Address: openDir(t) + "/kms-2.sock"}, KeyID: "2", Plugin: &plugin.Service{Plugin: w.plugin}, Program: w.server.o.Program})
	w.Expect(second.Start()).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- second.Run(ctx) }()
	w.at = second.o.Listen
	w.client = w.dial()
	hung := make(chan error, 1)
	go func() { _, err := w.status(deadline); hung <- err }()
	w.Eventually(func() int { return w.server.Faults()[0].Hits }).WithTimeout(deadline).Should(Equal(1))
	stop()
	w.Expect(<-hung).To(HaveOccurred())
	w.Eventually(done).WithTimeout(2 * time.Second).Should(Receive(BeNil()))
	_, err := os.Stat(second.o.Listen.Address)
	w.Expect(err).To(MatchError(os.ErrNotExist))
}
