package kmsplugin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	kmsapi "k8s.io/kms/apis/v2"
)

func statusMutants() []Mutant {
	return []Mutant{
		{Name: "status-fails", Mistake: "Status is an error.", Caught: "KMS2-STATUS-ANSWERS", Fault: "grpc-status:code=Internal,method=Status"},
		{Name: "healthz-upper-case", Mistake: "healthz is OK in upper case.", Caught: "KMS2-STATUS-HEALTHZ-OK", Fault: "healthz:text=OK"},
		{Name: "healthz-flaps", Mistake: "One call of Status in the beginning says that the plugin warms up.", Caught: "KMS2-STATUS-HEALTHZ-CONSTANT",
			Change: onStatus(func(n int, resp *kmsapi.StatusResponse) {
				if n == 30 {
					resp.Healthz = "warming up"
				}
			})},
		{Name: "version-v1", Mistake: "version is v1.", Caught: "KMS2-STATUS-VERSION", Fault: "version:version=v1"},
		{Name: "version-alternates", Mistake: "Each 40th call of Status returns the version v2beta1.", Caught: "KMS2-STATUS-VERSION-CONSTANT",
			Change: onStatus(func(n int, resp *kmsapi.StatusResponse) {
				if n%40 == 0 {
					resp.Version = "v2beta1"
				}
			})},
		{Name: "key-id-empty", Mistake: "Status returns no key_id.", Caught: "KMS2-STATUS-KEY-ID-PRESENT",
			Change: onStatus(func(_ int, resp *kmsapi.StatusResponse) { resp.KeyId = "" })},
		{Name: "key-id-oversized", Mistake: "The key_id has 1025 bytes.", Caught: "KMS2-STATUS-KEY-ID-SIZE",
			Change: renameKeyID(func(id string) string { return id + strings.Repeat("x", 1025-len(id)) })},
		{Name: "key-id-flips", Mistake: "Each tenth call of Status returns another key_id.", Caught: "KMS2-STATUS-KEY-ID-CONSTANT",
			Change: onStatus(func(n int, resp *kmsapi.StatusResponse) {
				if n%10 == 0 {
					resp.KeyId += "-replica"
				}
			})},
		{Name: "key-id-of-a-cache", Mistake: "Status returns another key_id after some pauses between calls.", Caught: "KMS2-STATUS-KEY-ID-STABLE", Change: keyIDOfACache},
		{Name: "key-id-with-newline", Mistake: "The key_id ends with a newline, as it was read from a file.", Caught: "KMS2-STATUS-KEY-ID-PRINTABLE",
			Change: renameKeyID(func(id string) string { return id + "\n" })},
		{Name: "key-id-counts-decrypts", Mistake: "Each Decrypt changes the key_id.", Caught: "KMS2-STATUS-KEY-ID-AFTER-CALLS", Change: keyIDCountsDecrypts},
		{Name: "key-id-of-a-connection", Mistake: "Each connection has a key_id of its own.", Caught: "KMS2-STATUS-SAME-ON-EACH-CONNECTION", Change: keyIDOfAConnection},
	}
}

func keyIDOfACache(r *Reference) {
	var mu sync.Mutex
	var last time.Time
	pauses := 0
	onStatus(func(_ int, resp *kmsapi.StatusResponse) {
		mu.Lock()
		defer mu.Unlock()
		if !last.IsZero() && time.Since(last) > 30*time.Millisecond {
			pauses++
		}
		last = time.Now()
		if pauses == 10 {
			resp.KeyId += "-expired"
		}
	})(r)
}

func keyIDCountsDecrypts(r *Reference) {
	var decrypts atomic.Int64
	r.Decrypt.after(func(context.Context, *kmsapi.DecryptRequest, *kmsapi.DecryptResponse) { decrypts.Add(1) })
	r.suffixKeyID(func(context.Context) string { return fmt.Sprint(decrypts.Load()) })
}

func keyIDOfAConnection(r *Reference) {
	r.Options = append(r.Options, grpc.StatsHandler(&connNumber{}))
	r.suffixKeyID(func(ctx context.Context) string { return fmt.Sprint(ctx.Value(connKey{})) })
}

// connNumber counts connections, and gives each call the number of its own.
type connNumber struct {
	stats.Handler
	count atomic.Int64
}

type connKey struct{}

func (c *connNumber) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connKey{}, c.count.Add(1))
}
func (*connNumber) HandleConn(context.Context, stats.ConnStats)                     {}
func (*connNumber) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (*connNumber) HandleRPC(context.Context, stats.RPCStats)                       {}
