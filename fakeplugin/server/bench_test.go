package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// echo is the baseline: the same service on the same kind of socket, doing nothing.
type echo struct {
	kmsapi.UnimplementedKeyManagementServiceServer
}

func (echo) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "kek-0123456789ab"}, nil
}

func (echo) Encrypt(_ context.Context, req *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	return &kmsapi.EncryptResponse{Ciphertext: req.Plaintext, KeyId: "kek-0123456789ab"}, nil
}

// BenchmarkPluginAgainstEcho measures what a plugin without a fault costs over a bare gRPC echo service. It reports
//
//	ratio     throughput of the plugin / throughput of echo; at least 0.9 is wanted
//	cpu-ratio CPU time of a call of echo / of the plugin, client included: the same, were nothing else running
//	plugin/s  calls per second of the plugin
//	echo/s    calls per second of echo
//
// Journal file and logs are on, as in production. Both serve at the same time in short alternating slices, so that
// whatever else the machine does hits both alike.
func BenchmarkPluginAgainstEcho(b *testing.B) {
	pluginAt, echoAt := benchPlugin(b), benchEcho(b)
	for _, method := range []string{"Status", "Encrypt"} {
		for _, callers := range []int{1, 16} {
			b.Run(method+"/callers="+strconv.Itoa(callers), func(b *testing.B) {
				compare(b, caller(b, pluginAt, method), caller(b, echoAt, method), callers)
			})
		}
	}
}

// slice is how long one side runs before the other: long enough to drown the switch, so short that a pair of them
// mostly sees the same noise of the machine.
const slice = 20 * time.Millisecond

// compare reports the median over pairs of slices, which a burst of noise in some of them does not move.
func compare(b *testing.B, plugin, echo func() error, callers int) {
	// Not b.Loop: the two sides take turns by time, and b.N only says how many calls are wanted of each.
	var ratios, cpuRatios, plugins, echoes []float64
	for turn, done := 0, 0; done < b.N; turn++ {
		var p, e sample
		if turn%2 == 0 { // so that being second is no advantage
			p = run(b, plugin, callers)
			e = run(b, echo, callers)
		} else {
			e = run(b, echo, callers)
			p = run(b, plugin, callers)
		}
		done += p.calls
		ratios, plugins, echoes = append(ratios, p.rate/e.rate), append(plugins, p.rate), append(echoes, e.rate)
		cpuRatios = append(cpuRatios, e.cpu/p.cpu)
	}
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(cpuRatios), "cpu-ratio")
	b.ReportMetric(median(plugins), "plugin/s")
	b.ReportMetric(median(echoes), "echo/s")
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
}

// sample is one slice of one side: its throughput, and the CPU time that a call cost, in seconds.
type sample struct {
	rate, cpu float64
	calls     int
}

// cpuTime is what this process has used, client and server together, in seconds.
func cpuTime(b *testing.B) float64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// run calls for one slice.
func run(b *testing.B, call func() error, callers int) sample {
	var total atomic.Int64
	var running sync.WaitGroup
	began, cpu := time.Now(), cpuTime(b)
	for range callers {
		running.Go(func() {
			n := int64(0)
			for ; time.Since(began) < slice; n++ {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
			total.Add(n)
		})
	}
	running.Wait()
	calls := max(float64(total.Load()), 1)
	return sample{calls / time.Since(began).Seconds(), (cpuTime(b) - cpu) / calls, int(calls)}
}

func caller(b *testing.B, at endpoint.Endpoint, method string) func() error {
	b.Helper()
	conn, err := grpc.NewClient(at.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	client := kmsapi.NewKeyManagementServiceClient(conn)
	if method == "Status" {
		return func() error { _, err := client.Status(context.Background(), &kmsapi.StatusRequest{}); return err }
	}
	return func() error {
		_, err := client.Encrypt(context.Background(), &kmsapi.EncryptRequest{Uid: "7e1f0a6e-0f0d-4c55-9a3b-0d6a3f1f4a11", Plaintext: []byte(seed)})
		return err
	}
}

func benchPlugin(b *testing.B) endpoint.Endpoint {
	b.Helper()
	dir := b.TempDir()
	file, err := os.Create(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	kms, err := remotekms.New(remotekms.Options{})
	if err != nil {
		b.Fatal(err)
	}
	p := plugin.New(plugin.Options{Name: "cp-1/1", Key: "key-1", Service: kms})
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(dir, "kms-1.sock")}
	s := New(Options{Listen: at, Node: "cp-1", KeyID: "1", Plugin: &plugin.Service{Plugin: p}, Log: slog.New(slog.NewJSONHandler(io.Discard, nil)),
		Journal: journal.New[journal.Call](journal.DefaultCapacity, file)})
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { stop(); running.Wait(); _ = file.Close() })
	return at
}

func benchEcho(b *testing.B) endpoint.Endpoint {
	b.Helper()
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(b.TempDir(), "echo.sock")}
	l, err := net.Listen("unix", at.Address)
	if err != nil {
		b.Fatal(err)
	}
	gs := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(gs, echo{})
	done := make(chan error, 1)
	go func() { done <- gs.Serve(l) }()
	b.Cleanup(func() {
		gs.Stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return at
}
